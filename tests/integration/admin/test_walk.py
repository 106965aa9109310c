"""The operator's walk on a cluster of ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import pytest
from tests.integration.admin.walk import STEPS, System, run_step

from cometmq.testing import cluster
from cometmq.testing.cluster import Cluster


@pytest.fixture(scope="module")
def servers() -> Iterator[Cluster]:
    with cluster(masters=2) as running:
        yield running


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_step(step: Callable[[System], Awaitable[None]], servers: Cluster) -> None:
    run_step(step, servers.name_servers, is_ours=True)
