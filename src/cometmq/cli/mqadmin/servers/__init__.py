"""Subcommands about clusters, brokers and name servers."""
