"""Filters that are Python functions, run in worker processes."""
