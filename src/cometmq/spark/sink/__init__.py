"""The sink ``rocketmq``: rows into topics, each exactly once."""
