"""``cometmq init``: a set-up with TLS and accounts in one command."""
