"""``cometmq doctor``: what is open, expired, mis-advertised or mismatched in a running cluster."""
