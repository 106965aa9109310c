"""Keeps one queue supplied: asks the queue's state machine what to do next, and does it.

The broker holds a pull for up to 15 s while there is nothing new, so an idle queue costs four requests a minute and a
new message arrives at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from cometmq.base.errors import CometError
from cometmq.base.ports import Clock
from cometmq.client.aio.pull.pull_call import PullCalls, PullStatus
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.core.consume.flow_limits import FlowLimits
from cometmq.client.core.consume.member.instructions import Instructions
from cometmq.client.core.consume.member.pulling import Hold, Pause, Pull, Suspended
from cometmq.client.core.consume.member.queue_life import QueueLife
from cometmq.model.subscription import SubscriptionData
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.reply_errors import BrokerReplyError

logger = logging.getLogger("cometmq.client")

HOLD_SECONDS: Final = 15.0
PULL_SECONDS: Final = 30.0


class Puller:
    """Args:
    subscription: what the group wants of the topic now; None when it wants nothing any more.
    limits: the limits of the queue now.
    is_running: cleared while the consumer is suspended.
    do: carries out instructions.
    """

    def __init__(
        self,
        life: QueueLife,
        pulls: PullCalls,
        *,
        config: PushConsumerConfig,
        subscription: Callable[[], SubscriptionData | None],
        limits: Callable[[], FlowLimits],
        is_running: asyncio.Event,
        do: Callable[[Instructions], None],
        clock: Clock,
    ) -> None:
        self._life = life
        self._pulls = pulls
        self._config = config
        self._subscription = subscription
        self._limits = limits
        self._is_running = is_running
        self._do = do
        self._monotonic = clock.monotonic
        self._has_room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        self._task = asyncio.get_running_loop().create_task(
            self._run(), name=f"cometmq-pull-{self._life.queue}"
        )
        return self._task

    def resume(self) -> None:
        """Look again now if it waits at a limit."""
        self._has_room.set()

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        life, is_running = self._life, self._is_running
        while True:
            subscription = self._subscription()
            step = life.next_pull(
                self._monotonic(),
                limits=self._limits(),
                is_suspended=not is_running.is_set(),
                is_subscribed=subscription is not None,
            )
            if isinstance(step, Pull) and subscription is not None:
                await self._pull(step, subscription)
            elif isinstance(step, Hold):
                await self._hold(step)
            elif isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
            elif isinstance(step, Suspended):
                await is_running.wait()
            else:
                return

    async def _pull(self, step: Pull, subscription: SubscriptionData) -> None:
        life = self._life
        try:
            result = await self._pulls.pull(
                life.queue,
                step.offset,
                subscription,
                count_max=self._config.pull_batch_size,
                wait_seconds=HOLD_SECONDS,
                commit_offset=step.position,
                send_subscription=self._config.post_subscription_when_pull,
                timeout=PULL_SECONDS,
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, pulling goes on; logged in _log
            _log(life, error)
            todo = life.pull_failed(
                self._monotonic(), by_flow_control=_has_code(error, ResponseCode.FLOW_CONTROL)
            )
        else:
            if result.status is PullStatus.OFFSET_ILLEGAL:
                todo = life.offset_illegal(result.next_offset, self._monotonic())
            else:
                todo = life.pulled(result.messages, result.next_offset, self._monotonic())
        if todo:
            self._do(todo)

    async def _hold(self, step: Hold) -> None:
        if step.is_to_log:
            logger.info("pulling pauses queue=%s reason=%s", self._life.queue, step.reason)
        has_room = self._has_room
        has_room.clear()
        # Finished messages wake it; the timer is for limits that change.
        timer = asyncio.get_running_loop().call_later(step.seconds, has_room.set)
        try:
            await has_room.wait()
        finally:
            timer.cancel()


def _log(life: QueueLife, error: Exception) -> None:
    if not isinstance(error, CometError):
        logger.error("pull failed queue=%s", life.queue, exc_info=error)
    elif _has_code(error, ResponseCode.SUBSCRIPTION_NOT_LATEST):
        # A heartbeat with the new subscription is on its way.
        logger.debug("pull refused queue=%s reason=%s", life.queue, error)
    elif not _has_code(error, ResponseCode.FLOW_CONTROL):
        logger.warning("pull failed queue=%s reason=%s", life.queue, error)


def _has_code(error: Exception, code: ResponseCode) -> bool:
    return isinstance(error, BrokerReplyError) and error.code == code
