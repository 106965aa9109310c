"""A loop that worked looks for more without sleeping, for as long as it was told and no longer."""

from __future__ import annotations

import asyncio

import pytest

from cometmq.remoting import busy_poll
from cometmq.remoting.busy_poll import BusyPoll


class Turns:
    """A clock that goes on by ten microseconds whenever it is asked, and counts that."""

    def __init__(self) -> None:
        self.asked = 0
        self.skipped = 1.0

    def __call__(self) -> float:
        self.asked += 1
        return self.skipped + self.asked * 10e-6


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    turns = Turns()
    monkeypatch.setattr(busy_poll, "monotonic", turns)
    return turns


async def settle() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


async def test_it_stays_awake_for_the_time_it_was_told(turns: Turns) -> None:
    BusyPoll(46).worked()
    await settle()
    assert turns.asked == 6
    await settle()
    assert turns.asked == 6


async def test_work_that_follows_closely_is_looked_for_longer_but_once_a_turn(turns: Turns) -> None:
    poll = BusyPoll(46)
    poll.worked()
    poll.worked()
    await settle()
    assert turns.asked == 2 + 37
    poll.worked()
    await settle()
    assert turns.asked == 2 + 37 + 1 + 5, "380 microseconds later is not close any more"


async def test_after_a_pause_it_is_short_again(turns: Turns) -> None:
    poll = BusyPoll(46)
    for _ in range(3):
        poll.worked()
        await settle()
        turns.asked = 0
        turns.skipped += 1
    poll.worked()
    await settle()
    assert turns.asked == 6


async def test_zero_means_never(turns: Turns) -> None:
    BusyPoll(0).worked()
    await settle()
    assert turns.asked == 0
