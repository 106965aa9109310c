"""Subcommands about consumer groups, their positions and their members."""
