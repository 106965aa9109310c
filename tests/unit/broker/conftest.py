"""A broker in memory for every test that asks for one, connections that remember, a loop that runs when told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.broker.rig import Rig

from cometmq.testing.fake_connection import FakeConnection


@pytest.fixture
def make_peer() -> Callable[..., FakeConnection]:
    return FakeConnection


@pytest.fixture
def make_rig() -> Callable[..., Rig]:
    """A broker with settings of its own: ``make_rig(flushDiskType="SYNC_FLUSH")``."""

    def make(**settings: str) -> Rig:
        return Rig(settings)

    return make


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig()
