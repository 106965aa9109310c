"""Messages with a delay level, and their delivery."""
