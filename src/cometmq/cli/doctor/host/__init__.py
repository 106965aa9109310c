"""``cometmq doctor --host``: whether this machine is set up for a broker."""
