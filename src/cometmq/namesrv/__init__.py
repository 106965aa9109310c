"""The name server: which broker has which topic, in memory, fed by the brokers."""
