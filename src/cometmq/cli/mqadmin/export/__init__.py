"""Subcommands that save what a cluster is, and create it again."""
