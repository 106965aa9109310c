"""Limits the number of messages per second, evenly spaced rather than in bursts.

limit = RateLimit(per_second=50)
PushConsumer("billing", listener=limit.around(handle), ...)
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from cometmq.base.clock import SystemClock
from cometmq.base.errors import UsageError
from cometmq.base.ports import Clock
from cometmq.client.helpers.listeners import count_of, is_async


class TokenBucket:
    """Tells when something may happen so that it happens at most ``per_second`` times a second. Not thread-safe.

    Tokens are added at that rate, up to ``burst``, and a message takes one. A caller that finds too few gets them in
    advance and is told how long to wait, so later callers wait longer.
    """

    def __init__(self, per_second: float, burst: float, now: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._tokens = burst
        self._at = now

    def take(self, count: int, now: float) -> float:
        """Take ``count`` tokens. Returns the seconds to wait before using them."""
        dripped = max(now - self._at, 0.0) * self._per_second
        self._tokens = min(self._tokens + dripped, self._burst) - count
        self._at = max(self._at, now)
        # A tiny deficit is just a rounding error.
        return max(-self._tokens / self._per_second, 0.0) if self._tokens < -1e-9 else 0.0


class RateLimit:
    """One per consumer, or one for several that share a limit. Threads and tasks may use it.

    Args:
        per_second: messages per second; a batch counts all its messages.
        burst: how many may pass at once after a pause. 1 spaces all of them evenly.
    """

    def __init__(
        self,
        per_second: float,
        *,
        burst: int = 1,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not per_second > 0 or burst < 1:
            raise UsageError(
                f"expected a rate above 0 and a burst of at least 1, got {per_second} and {burst}"
            )
        self._clock: Clock = clock or SystemClock()
        self._sleep = sleep
        self._lock = threading.Lock()
        self._bucket = TokenBucket(per_second, burst, self._clock.monotonic())

    def reserve(self, count: int = 1) -> float:
        """Reserve the next slot. Returns the seconds until it is the caller's turn."""
        with self._lock:
            return self._bucket.take(count, self._clock.monotonic())

    def wait(self, count: int = 1) -> None:
        """Block until it is this caller's turn."""
        if (seconds := self.reserve(count)) > 0:
            self._sleep(seconds)

    async def wait_async(self, count: int = 1) -> None:
        if (seconds := self.reserve(count)) > 0:
            await asyncio.sleep(seconds)

    def around(self, listener: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Wrap a listener, for single messages or batches, def or async def, so that it is called at the limited rate.

        A consumer's workers wait in here, so its flow control slows down pulling automatically. A message waits at
        most workers / rate seconds (20 workers at 1 per second: 20 s), and closing the consumer waits for that.
        """
        if is_async(listener):

            async def limited_async(argument: Any) -> Any:
                await self.wait_async(count_of(argument))
                return await listener(argument)

            return limited_async

        def limited(argument: Any) -> Any:
            self.wait(count_of(argument))
            return listener(argument)

        return limited
