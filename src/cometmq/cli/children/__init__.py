"""Processes that ``cometmq up`` starts beside its own: the dashboard, and further brokers."""
