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


def nothing() -> None:
    return None


async def settle() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


async def test_it_stays_awake_for_the_time_it_was_told(turns: Turns) -> None:
    BusyPoll(46, nothing).worked()
    await settle()
    assert turns.asked == 6
    await settle()
    assert turns.asked == 6


async def test_work_that_follows_closely_is_looked_for_longer_but_once_a_turn(turns: Turns) -> None:
    poll = BusyPoll(46, nothing)
    poll.worked()
    poll.worked()
    await settle()
    assert turns.asked == 2 + 37
    poll.worked()
    await settle()
    assert turns.asked == 2 + 37 + 1 + 5, "380 microseconds later is not close any more"


async def test_after_a_pause_it_is_short_again(turns: Turns) -> None:
    poll = BusyPoll(46, nothing)
    for _ in range(3):
        poll.worked()
        await settle()
        turns.asked = 0
        turns.skipped += 1
    poll.worked()
    await settle()
    assert turns.asked == 6


async def test_zero_means_never(turns: Turns) -> None:
    BusyPoll(0, nothing).worked()
    await settle()
    assert turns.asked == 0


async def test_the_first_look_after_work_is_spare_time(turns: Turns) -> None:
    spare: list[int] = []
    poll = BusyPoll(46, lambda: spare.append(turns.asked))
    poll.worked()
    poll.worked()
    assert spare == []
    await settle()
    assert spare == [3]
    poll.worked()
    await settle()
    assert len(spare) == 2


async def test_trouble_in_spare_time_does_not_end_the_looking(turns: Turns) -> None:
    troubles: list[BaseException] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: troubles.append(context["exception"]))

    def trouble() -> None:
        raise OSError("the disk is gone")

    poll = BusyPoll(46, trouble)
    for number in (1, 2):
        poll.worked()
        await settle()
        assert [str(one) for one in troubles] == ["the disk is gone"] * number
        assert turns.asked == 6 * number
        turns.skipped += 1
