"""RocketMQ's remoting protocol without I/O: bytes to commands and back."""
