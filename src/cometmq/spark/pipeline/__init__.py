"""``cometmq pipeline``: a YAML file into running queries."""
