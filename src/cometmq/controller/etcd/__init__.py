"""Decisions in etcd, for any number of controllers; one of them, the holder of a lease, acts by itself."""
