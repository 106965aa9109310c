"""Values of the trade and their rules; no I/O and no time."""
