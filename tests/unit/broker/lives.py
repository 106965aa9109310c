"""Lives of a broker that end well or badly, and when messages come that somebody waits for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from random import Random
from typing import Any, Final

from cometmq.testing.faulty_files import Crashed, Moment, Outage

LIVES: Final = 15
TICK_SECONDS: Final = 0.1


async def live_and_die(
    rig: Any,
    chance: Random,
    outage: Outage,
    live: Callable[[Any, Random, Iterator[int]], Awaitable[None]],
    *,
    calls_max: int,
) -> None:
    """Lives that end in a stop, in a crash between two calls of the disk, or in one in the middle of a call.

    Args:
        live: one life; its numbers go on from one to the next.
        calls_max: of the disk, before a crash inside of one.
    """
    numbers = count()
    for _ in range(LIVES):
        ending = chance.choice(["stop", "between", "inside"])
        if ending == "inside":
            rig.files.crash_in(chance.randrange(1, calls_max), chance.choice(list(Moment)))
        try:
            await live(rig, chance, numbers)
            if ending == "stop":
                await rig.stop()
        except Crashed:
            assert ending == "inside"
        if ending == "stop":
            rig.open()
        else:
            rig.crash(outage)


def came(rig: Any, messages: int, seconds_max: float = 10) -> dict[bytes, float]:
    """When each of so many messages came, in seconds from now."""
    times: dict[bytes, float] = {}
    for tick in range(round(seconds_max / TICK_SECONDS) + 1):
        for body in rig.delivered():
            times.setdefault(body, tick * TICK_SECONDS)
        if len(times) == messages:
            return times
        rig.advance(TICK_SECONDS)
    raise AssertionError(f"{len(times)} of {messages} messages came: {times}")
