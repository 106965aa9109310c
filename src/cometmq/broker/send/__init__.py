"""Sends, replies and messages that consumers send back, on their way into the store."""
