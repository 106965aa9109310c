"""What every store of decisions promises: read and compare-and-swap, whoever comes second loses."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.unit.controller.group_of import group_of
from tests.unit.controller.memory_store import MemoryStore
from tests.unit.controller.test_etcd_store import Stage

from cometmq.controller.decision_store import NEVER_STORED, DecisionStore
from cometmq.controller.file_store import FileStore
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles


@pytest.fixture(params=["file", "memory", "fake etcd"])
def store(request: pytest.FixtureRequest) -> DecisionStore:
    """``tests/integration/test_etcd_store.py`` has the same tests with a real etcd."""
    if request.param == "memory":
        return MemoryStore()
    if request.param == "fake etcd":
        stage = Stage()
        stage.run()
        return stage.store
    store = FileStore("/data", FaultyFiles(FakeClock()))
    store.open()
    return store


async def test_what_was_never_stored_is_not_there(store: DecisionStore) -> None:
    assert await store.read("bk") is None
    assert store.known() == {}


async def test_each_swap_makes_another_version(store: DecisionStore) -> None:
    first, second = group_of(1), group_of(2)
    assert await store.swap("bk", NEVER_STORED, first)
    one = await store.read("bk")
    assert one is not None
    assert one.group == first
    assert one.version > NEVER_STORED
    assert await store.swap("bk", one.version, second)
    two = await store.read("bk")
    assert two is not None
    assert (two.group, two.version > one.version) == (second, True)
    assert store.known() == {"bk": two}


async def test_who_has_not_seen_the_last_version_changes_nothing(store: DecisionStore) -> None:
    assert await store.swap("bk", NEVER_STORED, group_of(1))
    held = await store.read("bk")
    assert held is not None
    for seen in (NEVER_STORED, held.version + 1):
        assert not await store.swap("bk", seen, group_of(2))
    assert await store.read("bk") == held


async def test_of_many_at_the_same_time_one_succeeds(store: DecisionStore) -> None:
    won = await asyncio.gather(
        *(store.swap("bk", NEVER_STORED, group_of(members)) for members in range(1, 9))
    )
    assert won.count(True) == 1
    assert store.known()["bk"].group == group_of(won.index(True) + 1)


async def test_groups_do_not_touch_each_other(store: DecisionStore) -> None:
    other = replace(group_of(1), broker_name="other")
    assert await store.swap("bk", NEVER_STORED, group_of(1))
    assert await store.swap("other", NEVER_STORED, other)
    assert {name: held.group for name, held in store.known().items()} == {
        "bk": group_of(1),
        "other": other,
    }
