"""Masters and slaves: the log by RocketMQ's HA wire, the tables by ordinary requests."""
