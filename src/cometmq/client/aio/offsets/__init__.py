"""How far a group has consumed, kept at the brokers or in a file."""
