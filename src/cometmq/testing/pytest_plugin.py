"""Fixtures for pytest, active wherever this package is installed: a real cluster in milliseconds.

    def test_orders_arrive(cometmq_cluster):
        topic = cometmq_cluster.create_topic("Orders")
        run_my_service(name_servers=cometmq_cluster.name_servers, topic=topic)

One cluster, in a thread, serves all tests of a run; names that end in something unique keep them apart. It starts with
the first test that asks for it. A run that asks for none imports nothing of it.
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
    """``broker.conf`` keys for the cluster of the run; a fixture of this name in your conftest.py sets some."""
    return {}


@pytest.fixture(scope="session")
def cometmq_servers(cometmq_settings: Mapping[str, str]) -> Iterator[Cluster]:
    """The cluster of the run. Tests want ``cometmq_cluster``."""
    from cometmq.testing.cluster import ServersLeaked, cluster

    servers = cluster(settings=cometmq_settings)
    servers.__enter__()
    yield servers
    try:
        servers.__exit__(None, None, None)
    except ServersLeaked:
        # Threads that tests of the run started and left are not told from the servers' own. All is removed.
        pass


@pytest.fixture
def cometmq_cluster(cometmq_servers: Cluster) -> ClusterView:
    """A running name server and broker, and names for topics and groups that no other test has."""
    from cometmq.testing.cluster_view import ClusterView

    return ClusterView(
        cometmq_servers.name_servers,
        cometmq_servers.broker_address,
        suffix=uuid.uuid4().hex[:10],
    )
