"""Our own calls that wait for a reply: opaque -> waiter, with deadlines.

A call that is answered in time, the normal case, costs one entry and no timer of its own: there is a single timer for
the earliest deadline known when it was set, and calls that are answered by the time it fires are simply no longer here.

A call that times out although nothing has come since it was made means more than a late reply: the peer may be gone
without a word, and the network would take minutes to say so.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from cometmq.base.errors import CallTimedOut, ConnectionLost, TooManyInFlight
from cometmq.protocol.command import Command
from cometmq.protocol.send_reply import Stored, answer_plain

if TYPE_CHECKING:
    from cometmq.remoting.large_body import LentMemory

OPAQUE_MAX: Final = (1 << 31) - 1

# Deadlines closer together than this are looked at in one go.
TIMER_STEP_SECONDS: Final = 0.01


_Waiter = tuple["asyncio.Future[Any]", float, int, "LentMemory | None", int, bool]
"""The future, the deadline, the request code, memory that was lent, ``PendingCalls.heard`` when the call was made, and
whether its reply may be ``Stored``.

A plain tuple, because one is made for every call. The compiled twin of ``protocol.send_reply`` reads it, too.
"""


class PendingCalls:
    """The unanswered calls of one connection. Belongs to the event loop's thread."""

    __slots__ = (
        "_calls_max",
        "_loop",
        "_opaque",
        "_timer",
        "_timer_at",
        "_waiters",
        "heard",
        "on_silence",
        "peer",
    )

    def __init__(
        self, loop: asyncio.AbstractEventLoop, calls_max: int, *, first_opaque: int = 0
    ) -> None:
        self.peer = "unconnected"
        self.heard = 0
        """How often something has come from the peer."""
        self.on_silence: Callable[[], None] = _nothing
        """Called when a call has timed out and nothing has come since it was made."""
        self._loop = loop
        self._calls_max = calls_max
        self._opaque = first_opaque
        self._waiters: dict[int, _Waiter] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf

    def __len__(self) -> int:
        return len(self._waiters)

    def add(
        self,
        code: int,
        deadline: float,
        memory: LentMemory | None = None,
        is_plain: bool = False,
    ) -> tuple[int, asyncio.Future[Any]]:
        """The opaque for a new call, and the future of its reply, which fails with CallTimedOut at the deadline.

        Args:
            deadline: on the loop's clock; infinite for none.
            memory: where the body of a large reply goes.
            is_plain: the reply may come as ``Stored``.

        Raises:
            TooManyInFlight: the bound is reached; the call must not be sent.
        """
        if len(self._waiters) >= self._calls_max:
            raise TooManyInFlight(
                f"{len(self._waiters)} calls to {self.peer} are unanswered, which is the bound"
            )
        opaque = self.number()
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiters[opaque] = (future, deadline, code, memory, self.heard, is_plain)
        if deadline < self._timer_at:
            self._set_timer(deadline)
        return opaque, future

    def number(self) -> int:
        """The next free opaque. After two billion they start again; one that is still waited for is passed over."""
        opaque = self._opaque
        while opaque in self._waiters:
            opaque = (opaque + 1) & OPAQUE_MAX
        self._opaque = (opaque + 1) & OPAQUE_MAX
        return opaque

    def answer_plain(self, data: bytes) -> int:
        """Answer the plain replies that the data begins with; how many bytes those are."""
        return answer_plain(data, self._waiters, Stored)

    def answer(self, reply: Command) -> bool:
        """Give a reply to whoever waits for it; False when nobody does (any more)."""
        waiter = self._waiters.pop(reply.opaque, None)
        if waiter is None:
            return False
        future = waiter[0]
        if not future.done():
            future.set_result(reply)
        return True

    def is_waited_for(self, reply: Command) -> bool:
        return reply.opaque in self._waiters

    def lent_to(self, reply: Command) -> LentMemory | None:
        """The memory that whoever waits for the reply has lent for it."""
        waiter = self._waiters.get(reply.opaque)
        return None if waiter is None else waiter[3]

    def forget(self, opaque: int) -> None:
        """The caller no longer waits."""
        self._waiters.pop(opaque, None)

    def fail_all(self, reason: str) -> None:
        """End every call with ConnectionLost."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._timer_at = math.inf
        waiters = list(self._waiters.values())
        self._waiters.clear()
        for future, *_ in waiters:
            if not future.done():
                future.set_exception(ConnectionLost(reason))

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = when
        self._timer = self._loop.call_at(when, self._expire)

    def _expire(self) -> None:
        now = self._loop.time()
        self._timer = None
        self._timer_at = math.inf
        # A loop may fire a timer a little early; up to one step counts as on time.
        due = now + TIMER_STEP_SECONDS / 2
        expired = [opaque for opaque, waiter in self._waiters.items() if waiter[1] <= due]
        is_silent = False
        for opaque in expired:
            future, _, code, _, heard, _ = self._waiters.pop(opaque)
            is_silent = is_silent or heard == self.heard
            if not future.done():
                future.set_exception(
                    CallTimedOut(f"{self.peer} did not answer request {code} in time", sent=True)
                )
        earliest = min((waiter[1] for waiter in self._waiters.values()), default=math.inf)
        if earliest < math.inf:
            self._set_timer(max(earliest, now + TIMER_STEP_SECONDS))
        if is_silent:
            self.on_silence()


def _nothing() -> None:
    return None
