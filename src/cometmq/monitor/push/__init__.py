"""Metrics sent to a collector, instead of read from a page."""
