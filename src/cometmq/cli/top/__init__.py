"""`cometmq top`: a cluster at a glance, again and again: rates, waiting, replication, lag."""
