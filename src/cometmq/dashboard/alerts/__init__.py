"""Rules that are looked at after each round, and who is told when one of them holds."""
