"""Accounts: users and rules of RocketMQ 5 (ACL 2), and accounts of RocketMQ 4 (ACL 1)."""
