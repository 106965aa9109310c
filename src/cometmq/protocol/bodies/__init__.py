"""Bodies of requests and replies, by subject."""
