"""CometMQ: RocketMQ, written anew in Python."""

__version__ = "0.1.0"
"""The one place that has it; packaging, commands and `make release` read it here."""
