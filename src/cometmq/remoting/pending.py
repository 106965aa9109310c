"""Our own calls that wait for a reply: opaque -> waiter, with deadlines. Decides only; the connection has the timer.

A call that is answered in time, the normal case, costs one dict entry and no timer: the connection keeps a single timer
for the earliest deadline it knows, and what that timer finds answered already is simply gone.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from cometmq.base.errors import TooManyInFlight
from cometmq.protocol.command import Command

OPAQUE_MAX: Final = (1 << 31) - 1


class Waiter(NamedTuple):
    future: asyncio.Future[Command]
    deadline: float
    code: int


class PendingCalls:
    """The unanswered calls of one connection. Not thread-safe."""

    __slots__ = ("_calls_max", "_opaque", "_waiters")

    def __init__(self, calls_max: int, *, first_opaque: int = 0) -> None:
        self._calls_max = calls_max
        self._opaque = first_opaque
        self._waiters: dict[int, Waiter] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    def add(self, waiter: Waiter) -> int:
        """The opaque under which the reply will come.

        Raises:
            TooManyInFlight: the bound is reached; the call must not be sent.
        """
        waiters = self._waiters
        if len(waiters) >= self._calls_max:
            raise TooManyInFlight(
                f"{len(waiters)} calls unanswered; the bound is {self._calls_max}"
            )
        opaque = self.number()
        waiters[opaque] = waiter
        return opaque

    def number(self) -> int:
        """The next free opaque. After two billion they start again; one that is still waited for is passed over."""
        opaque = self._opaque
        while opaque in self._waiters:
            opaque = (opaque + 1) & OPAQUE_MAX
        self._opaque = (opaque + 1) & OPAQUE_MAX
        return opaque

    def take(self, opaque: int) -> Waiter | None:
        """Whoever waits for this opaque, who then waits no longer."""
        return self._waiters.pop(opaque, None)

    def take_expired(self, now: float) -> list[Waiter]:
        """All whose deadline has passed."""
        expired = [opaque for opaque, waiter in self._waiters.items() if waiter.deadline <= now]
        return [self._waiters.pop(opaque) for opaque in expired]

    def take_all(self) -> list[Waiter]:
        waiters = list(self._waiters.values())
        self._waiters.clear()
        return waiters

    def earliest_deadline(self) -> float | None:
        return min((waiter.deadline for waiter in self._waiters.values()), default=None)
