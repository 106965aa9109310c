"""Servers, clocks and disks for tests; part of the package, because users need them, too."""

from cometmq.testing.cluster import Cluster, ServersLeaked, cluster

__all__ = ["Cluster", "ServersLeaked", "cluster"]
