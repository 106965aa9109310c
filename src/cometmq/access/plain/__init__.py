"""Accounts as RocketMQ 4 has them (ACL 1): ``plain_acl.yml`` and the directory ``acl``."""
