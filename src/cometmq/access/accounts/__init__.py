"""Accounts as RocketMQ 5 has them (ACL 2): users, policies, and the file that keeps them."""
