"""Reads by queue offset, time and key; bulk reads."""
