"""The runtime: follows jobs, holds them, drives them, and tells what happened."""
