"""What Tarry costs, and what its peers cost, measured side by side: `make bench`."""
