"""Who may do what: needs of requests, accounts of RocketMQ 4 (``plain``) and 5 (``accounts``), and the audit log."""
