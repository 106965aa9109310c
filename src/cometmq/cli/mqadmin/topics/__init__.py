"""Subcommands about topics."""
