"""Subcommands about messages: look up, print, send, dead letters."""
