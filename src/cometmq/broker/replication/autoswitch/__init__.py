"""Replication under a controller: RocketMQ's wire with epochs, and who of the slaves has everything."""
