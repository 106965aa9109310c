"""Fixtures for pytest, active wherever this package is installed: a real cluster in milliseconds.

    def test_orders_arrive(cometmq_cluster):
        topic = cometmq_cluster.create_topic("Orders")
        run_my_service(name_servers=cometmq_cluster.name_servers, topic=topic)

One cluster, in a thread, serves all tests of a run; unique suffixes keep their names apart. It starts with the first
test that uses it. A run that does not use it imports nothing of it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cometmq.testing.cluster import Cluster
    from cometmq.testing.cluster_view import ClusterView


@pytest.fixture(scope="session")
def cometmq_settings() -> Mapping[str, str]:
    """``broker.conf`` keys for the cluster of the run; override this fixture in your conftest.py to set some."""
    return {}


@pytest.fixture(scope="session")
def cometmq_servers(cometmq_settings: Mapping[str, str]) -> Iterator[Cluster]:
    """The cluster of the run. Tests use ``cometmq_cluster``."""
    from cometmq.testing.cluster import ServersLeaked, cluster

    servers = cluster(settings=cometmq_settings)
    servers.__enter__()
    yield servers
    try:
        servers.__exit__(None, None, None)
    except ServersLeaked:
        # Threads that tests started and left behind cannot be told from those of the servers. Everything is removed.
        pass


@pytest.fixture
def cometmq_cluster(cometmq_servers: Cluster) -> ClusterView:
    """A running name server and broker, with unique names for the test's topics and groups."""
    from cometmq.testing.cluster_view import ClusterView

    return ClusterView(
        cometmq_servers.name_servers,
        cometmq_servers.broker_address,
        suffix=uuid.uuid4().hex[:10],
    )
