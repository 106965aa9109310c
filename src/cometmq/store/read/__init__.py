"""Reads by queue offset, time and key; bulk reads and read-ahead."""
