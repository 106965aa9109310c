"""Decisions about sending: which queue, what to retry, how to split a batch."""
