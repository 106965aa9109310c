"""Keeps one queue supplied: pulls, waits at limits, and reports an offset that the broker does not have.

The broker holds a pull for up to 15 s while there is nothing new, so an idle queue costs four requests a minute and a
new message arrives at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from cometmq.base.errors import CometError
from cometmq.base.ports import Clock
from cometmq.client.aio.held_queue import HeldQueue
from cometmq.client.aio.pull_call import PullCalls, PullResult, PullStatus
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.core.flow_limits import FlowLimits
from cometmq.model.received_message import ReceivedMessage
from cometmq.model.subscription import SubscriptionData
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.reply_errors import BrokerReplyError

logger = logging.getLogger("cometmq.client")

HOLD_SECONDS: Final = 15.0
PULL_SECONDS: Final = 30.0
LIMIT_SECONDS: Final = 0.05
"""How long a puller waits at a limit before it looks again; sooner when messages are finished."""
FLOW_CONTROL_SECONDS: Final = 0.02
FRESH_SECONDS: Final = 1.0
"""A pull sent longer ago than this has been looked at by its broker."""
LOGGED_PULLS: Final = 1000
"""Every so many pauses at a limit one is logged."""


class Puller:
    """Args:
    subscription: what the group wants of the topic now; None when it wants nothing any more.
    limits: the limits of the queue now.
    is_running: cleared while the consumer is suspended.
    lock_seconds: how long a queue lock is trusted; None without locks.
    commits: send the position along with each pull.
    deliver: takes new messages.
    on_illegal: told the offset to go on from when the broker does not have the one asked for; the puller has ended.
    """

    def __init__(
        self,
        held: HeldQueue,
        pulls: PullCalls,
        *,
        config: PushConsumerConfig,
        subscription: Callable[[], SubscriptionData | None],
        limits: Callable[[], FlowLimits],
        is_running: asyncio.Event,
        lock_seconds: float | None,
        commits: bool,
        deliver: Callable[[HeldQueue, Sequence[ReceivedMessage]], None],
        on_illegal: Callable[[int], None],
        clock: Clock,
    ) -> None:
        self._held = held
        self._pulls = pulls
        self._config = config
        self._subscription = subscription
        self._limits = limits
        self._is_running = is_running
        self._lock_seconds = lock_seconds
        self._commits = commits
        self._deliver = deliver
        self._on_illegal = on_illegal
        self._clock = clock
        self._pauses = 0
        self._sent_offset: int | None = None
        self._sent_at = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(
            self._run(), name=f"cometmq-pull-{self._held.queue}"
        )

    @property
    def is_due(self) -> bool:
        """Whether it should be pulling: it runs, and the consumer is not suspended."""
        return self._is_running.is_set()

    async def stop(self, settle_seconds: float = 0.0) -> None:
        """End. A pull that was sent just now with an older position is given the time to be answered first.

        A broker that gets to it only after the last commit would go back to that position.
        """
        task = self._task
        if task is None:
            return
        is_outdated = self._sent_offset not in (None, self._held.process.commit_offset)
        if is_outdated and self._clock.monotonic() - self._sent_at < FRESH_SECONDS:
            await asyncio.wait([task], timeout=settle_seconds)
        task.cancel()
        await asyncio.wait([task])

    async def _run(self) -> None:
        held = self._held
        while not held.is_dropped:
            held.last_pull = self._clock.monotonic()
            held.last_pull_ms = self._clock.wall_ms()
            if not self._is_running.is_set():
                await self._is_running.wait()
                continue
            if (reason := self._limits().exceeded(held.process)) is not None:
                await self._wait_for_space(reason)
                continue
            if self._lock_seconds is not None and not held.is_locked(
                held.last_pull, self._lock_seconds
            ):
                await asyncio.sleep(self._config.pull_error_delay_ms / 1000)
                continue
            subscription = self._subscription()
            if subscription is None:
                return
            try:
                result = await self._pull(subscription)
            except Exception as error:
                delay = self._delay_after(error)
                if not isinstance(error, CometError):
                    logger.exception("pull failed queue=%s", held.queue)
                await asyncio.sleep(delay)
                continue
            if held.is_dropped:
                return
            if result.status is PullStatus.OFFSET_ILLEGAL:
                logger.warning(
                    "offset is not there queue=%s offset=%d next=%d",
                    held.queue,
                    held.process.next_offset,
                    result.next_offset,
                )
                self._on_illegal(result.next_offset)
                return
            added = held.process.add(result.messages, result.next_offset)
            if added:
                held.pulled_count += len(added)
                self._deliver(held, added)
            if self._config.pull_interval_ms:
                await asyncio.sleep(self._config.pull_interval_ms / 1000)

    async def _pull(self, subscription: SubscriptionData) -> PullResult:
        process = self._held.process
        position = process.commit_offset
        self._sent_offset = position if self._commits and position > 0 else None
        self._sent_at = self._clock.monotonic()
        try:
            return await self._pulls.pull(
                self._held.queue,
                process.next_offset,
                subscription,
                count_max=self._config.pull_batch_size,
                wait_seconds=HOLD_SECONDS,
                commit_offset=self._sent_offset,
                send_subscription=self._config.post_subscription_when_pull,
                timeout=PULL_SECONDS,
            )
        finally:
            self._sent_offset = None

    def _delay_after(self, error: Exception) -> float:
        if isinstance(error, BrokerReplyError):
            if error.code == ResponseCode.FLOW_CONTROL:
                return FLOW_CONTROL_SECONDS
            if error.code == ResponseCode.SUBSCRIPTION_NOT_LATEST:
                # A heartbeat with the new subscription is on its way.
                logger.debug("pull refused queue=%s reason=%s", self._held.queue, error)
                return self._config.pull_error_delay_ms / 1000
        logger.warning("pull failed queue=%s reason=%s", self._held.queue, error)
        return self._config.pull_error_delay_ms / 1000

    async def _wait_for_space(self, reason: str) -> None:
        if self._pauses % LOGGED_PULLS == 0:
            logger.info("pulling pauses queue=%s reason=%s", self._held.queue, reason)
        self._pauses += 1
        space = self._held.space
        space.clear()
        # Finished messages wake it; the timer is for limits that change.
        timer = asyncio.get_running_loop().call_later(LIMIT_SECONDS, space.set)
        try:
            await space.wait()
        finally:
            timer.cancel()
