"""Messages with a delivery time, and their recall; ``timed_messages`` puts them together."""
