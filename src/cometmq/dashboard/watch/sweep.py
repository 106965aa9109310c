"""Questions that servers answer for one name only: who is online of a group, where a topic's queues are.

Some names are asked for in each round, those asked longest ago first, so that the number of requests is bounded however
many names there are. What was found stays, with the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from cometmq.base.errors import CometError
from cometmq.base.ports import Clock

T = TypeVar("T")

PER_ROUND: Final = 40
AT_ONCE: Final = 8
ANSWER_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    value: T
    at_ms: int


class Sweep(Generic[T]):
    """
    Args:
        ask: what it raises leaves what was known before.
        rest_seconds: how long an answer is good enough, so that a server is not asked the same again and again.
    """

    def __init__(
        self,
        ask: Callable[[str], Awaitable[T]],
        clock: Clock,
        rest_seconds: Callable[[T], float] = lambda value: 0.0,
    ) -> None:
        self._rest_seconds = rest_seconds
        self._ask = ask
        self._clock = clock
        self._found: dict[str, Found[T]] = {}
        self._asked: dict[str, float] = {}

    def get(self, name: str) -> Found[T] | None:
        return self._found.get(name)

    def put(self, name: str, value: T) -> None:
        """Somebody asked anyway."""
        self._found[name] = Found(value, self._clock.wall_ms())
        self._asked[name] = self._clock.monotonic()

    async def go(self, names: Iterable[str], first: Iterable[str] = ()) -> None:
        """Ask for some of the names; those of ``first`` before the others. Names that are gone are forgotten."""
        known = set(names)
        for gone in [name for name in self._asked if name not in known]:
            del self._asked[gone]
            self._found.pop(gone, None)
        urgent = {name for name in first if name in known}
        # Half for the urgent ones at most: the others get their turn, too.
        chosen = self._oldest(urgent, PER_ROUND // 2)
        chosen += self._oldest(known - set(chosen), PER_ROUND - len(chosen))
        room = asyncio.Semaphore(AT_ONCE)

        async def one(name: str) -> None:
            async with room:
                self._asked[name] = self._clock.monotonic()
                try:
                    async with asyncio.timeout(ANSWER_SECONDS):
                        self._found[name] = Found(await self._ask(name), self._clock.wall_ms())
                except (CometError, TimeoutError):
                    return  # the round itself notices brokers that do not answer

        await asyncio.gather(*(one(name) for name in chosen))

    def _oldest(self, names: set[str], count: int) -> list[str]:
        now = self._clock.monotonic()
        due = [name for name in names if self._is_due(name, now)]
        return sorted(due, key=lambda name: (self._asked.get(name, -1.0), name))[:count]

    def _is_due(self, name: str, now: float) -> bool:
        found = self._found.get(name)
        return found is None or now - self._asked[name] >= self._rest_seconds(found.value)
