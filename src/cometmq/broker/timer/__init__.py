"""Messages with a time of delivery: see ``timed_messages``."""
