"""Flushing, retention and deletion."""
