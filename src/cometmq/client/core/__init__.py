"""Decisions of the client; no I/O and no time."""
