"""``mqadmin``: RocketMQ's admin commands, a skin over ``cometmq.admin``."""
