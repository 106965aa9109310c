"""Consume queues: for each queue of a topic, where its messages lie in the log."""
