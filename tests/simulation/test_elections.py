"""Brokers under a controller against everything that can happen to them, by seed.

As ``test_replication``, with the controller client, the epochs and the SyncStateSet; ``elected_world`` says what must
be true. ``COMETMQ_ELECTION_SEEDS=5000`` tries more schedules, ``COMETMQ_SEED`` begins with another.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator

import pytest
from tests.simulation.elected_schedule import Schedule

from cometmq.broker.controller_client.standing import Standing
from cometmq.broker.replication import follow
from cometmq.broker.replication.autoswitch import epoch_follow
from cometmq.broker.replication.autoswitch.sync_state import SyncState

SEEDS = int(os.environ.get("COMETMQ_ELECTION_SEEDS", "200"))
FIRST_SEED = int(os.environ.get("COMETMQ_SEED", "0"))
PARTS = 4
FOUND = [46, 902, 1193]
"""Seeds that failed once; what they showed is mended."""
SEARCHED = 300


@pytest.fixture(autouse=True)
def _small_and_quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(follow, "LOOK_BACK_BYTES", 600)
    monkeypatch.setattr(follow, "LOOK_BACK_FACTOR", 4)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found(seed: int) -> None:
    Schedule(seed).run()


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_acknowledged_is_lost_by_an_election(part: int) -> None:
    for seed in range(FIRST_SEED + part, FIRST_SEED + SEEDS, PARTS):
        Schedule(seed).run()


def test_a_seed_gives_the_same_run_again() -> None:
    stories = []
    for _ in range(2):
        schedule = Schedule(11)
        schedule.run()
        stories.append((schedule.story(), schedule.random.getstate()))
    assert stories[0] == stories[1]


# Faults that somebody could build in.


def _wait_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SyncState, "awaited", property(lambda self: frozenset()))


def _propose_before_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    awaited = SyncState.awaited

    def late(self: SyncState) -> frozenset[int]:
        assert isinstance(awaited, property)
        return self.members - {self.own_id}

    monkeypatch.setattr(SyncState, "awaited", property(late))


def _reign_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Standing, "tick", lambda self, now: [])
    monkeypatch.setattr(Standing, "is_proven", lambda self, now: True)


def _cut_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        epoch_follow, "common_end", lambda own, own_end, master, master_end: own_end
    )
    monkeypatch.setattr(follow, "LOOK_BACK_BYTES", 1)


@pytest.mark.parametrize(
    "plant",
    [
        _wait_for_nobody,
        _propose_before_waiting,
        _reign_for_ever,
        _cut_nothing,
    ],
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    for seed in range(SEARCHED):
        try:
            Schedule(seed).run()
        except AssertionError:
            return
    pytest.fail("no schedule showed it")
