"""Subcommands about replication and controllers."""
