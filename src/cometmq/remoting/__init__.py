"""Connections: servers and clients that exchange commands; TLS; signed requests."""
