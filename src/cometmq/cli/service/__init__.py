"""``cometmq service``: name server, broker and controller as systemd services, with limits and hardening."""
