"""A store on disk, whose files the tests read, on a clock that only moves when told to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.log_stores import open_store

from cometmq.store.message_store import MessageStore
from cometmq.testing.fake_clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> Iterator[MessageStore]:
    store = open_store(tmp_path / "store", clock)
    yield store
    store.close()


@pytest.fixture
def root(store: MessageStore) -> Path:
    return Path(store.config.root)
