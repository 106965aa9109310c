"""Servers, clocks and disks for tests; shipped, because our users test too."""

from cometmq.testing.cluster import Cluster, ServersLeaked, cluster

__all__ = ["Cluster", "ServersLeaked", "cluster"]
