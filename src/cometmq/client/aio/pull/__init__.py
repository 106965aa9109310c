"""Consumers that ask for messages: pull and lite pull."""
