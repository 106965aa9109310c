"""Backups of a store: taken beside a running broker, checked, and restored, also as of a time; ``backups`` has them."""
