"""Subcommands about accounts, of RocketMQ 4 and 5."""
