"""The source ``rocketmq``: topics as tables, in batches and as streams."""
