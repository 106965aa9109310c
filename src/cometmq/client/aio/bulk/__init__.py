"""Questions about many queues at once, and whole ranges of a queue in large replies."""
