"""What a member of a consumer group does with its queues: a state machine without I/O."""
