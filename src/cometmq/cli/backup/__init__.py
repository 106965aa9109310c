"""``cometmq backup``: backups of a broker's store, taken while it runs, checked, and restored, also as of a time."""
