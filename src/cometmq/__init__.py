"""CometMQ: RocketMQ, written anew in Python."""

__version__ = "0.1.0"
