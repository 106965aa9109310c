"""Patterns around the client: outbox, idempotence, rate limit, priorities, log handler."""
