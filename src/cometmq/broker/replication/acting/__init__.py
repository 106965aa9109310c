"""Brokers of one name that watch each other, so that a slave can stand in for its lost master, for readers alone."""
