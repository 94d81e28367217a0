"""`python -m tarry.cli`: the command line without its console script."""

from __future__ import annotations

from tarry.cli import main

if __name__ == "__main__":
    main()
