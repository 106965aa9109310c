"""What to trust after a stop, and making queues and index from the log again."""
