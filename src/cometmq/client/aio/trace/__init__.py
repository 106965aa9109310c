"""Hooks that watch sends and consumption, and the message trace made from them."""
