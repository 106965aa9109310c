"""Typed headers of requests and replies, by subject."""
