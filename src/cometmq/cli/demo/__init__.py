"""``cometmq demo``: the main features from end to end, explained as they happen."""
