"""Pulls and long polling, queue offsets, and queries by id, key and time."""
