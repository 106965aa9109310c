"""Stored records as Arrow columns, decoded without a step of Python per message."""
