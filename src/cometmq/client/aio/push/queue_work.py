"""Carries out what the state machine of the member's queues wants, and tells it how that ended.

Decides nothing: ``core.consume.member`` does. Each question to a broker is a task; each queue has one timer at most.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from cometmq.base.errors import CometError
from cometmq.base.ports import Clock
from cometmq.client.aio.offsets.broker_offsets import OffsetStore
from cometmq.client.aio.push.handover import Handover
from cometmq.client.aio.push.puller import Puller
from cometmq.client.aio.push.queue_locks import QueueLocks
from cometmq.client.core.consume.member.held_queue import HeldQueue
from cometmq.client.core.consume.member.instructions import (
    Again,
    AskOwner,
    Begin,
    Commit,
    Deliver,
    EndPull,
    FindStart,
    Gone,
    Instruction,
    Instructions,
    Lock,
    ResumePull,
    Tell,
    Unlock,
    Wake,
    Withdraw,
)
from cometmq.client.core.consume.member.queue_life import QueueLife
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.properties import RETRY_TOPIC
from cometmq.model.messages.received_message import ReceivedMessage

logger = logging.getLogger("cometmq.client")


class QueueListener(Protocol):
    """The concurrent or the orderly one."""

    def begin(self, held: HeldQueue) -> None: ...

    def deliver(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None: ...

    def withdraw(self, held: HeldQueue) -> int: ...


class QueueWork:
    """Args:
    start_offset: finds where to begin in a queue.
    make_puller: for a queue that is held now.
    locks: for orderly consumption in clustering.
    handover: None when nobody is asked.
    unwrap_topic: a topic's name without namespace.
    soon: asks for another round of sharing out.
    on_left: told of each queue that was held and is not any more.
    """

    def __init__(
        self,
        group: str,
        *,
        clock: Clock,
        offsets: OffsetStore,
        start_offset: Callable[[MessageQueue], Awaitable[int]],
        listener: QueueListener,
        make_puller: Callable[[QueueLife], Puller],
        locks: QueueLocks | None,
        handover: Handover | None,
        unwrap_topic: Callable[[str], str],
        soon: Callable[[], None],
        on_left: Callable[[HeldQueue], None],
    ) -> None:
        self._group = group
        self._monotonic = clock.monotonic
        self._offsets = offsets
        self._start_offset = start_offset
        self._listener = listener
        self._make_puller = make_puller
        self._locks = locks
        self._handover = handover
        self._unwrap_topic = unwrap_topic
        self._soon = soon
        self._on_left = on_left
        self._waiting: deque[Instruction] = deque()
        self._is_busy = False
        self._is_closed = False
        self._pullers: dict[HeldQueue, Puller] = {}
        self._timers: dict[QueueLife, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_changed = asyncio.Event()

    def do(self, todo: Instructions) -> None:
        """Carry out instructions, in order. Those that arise meanwhile wait for their turn."""
        self._waiting.extend(todo)
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._waiting:
                self._carry_out(self._waiting.popleft())
        finally:
            self._is_busy = False

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Return when this is so; looked at whenever a queue is gone."""
        while not is_so():
            self._is_changed.clear()
            await self._is_changed.wait()

    async def close(self) -> None:
        """End what is still under way; nobody waits for it any more."""
        self._is_closed = True
        for timer in self._timers.values():
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._handover is not None:
            await self._handover.close()

    def _carry_out(self, wanted: Instruction) -> None:
        match wanted:
            case Deliver(held, messages):
                self._deliver(held, messages)
            case ResumePull(held):
                if (puller := self._pullers.get(held)) is not None:
                    puller.resume()
            case Wake(life, at):
                self._set_timer(life, at)
            case AskOwner(life, owner):
                self._start(life, self._ask_owner(life, owner))
            case Lock(life):
                self._start(life, self._lock(life))
            case FindStart(life):
                self._start(life, self._find_start(life))
            case Begin(life):
                self._begin(life)
            case Withdraw(life):
                assert life.held is not None
                count = self._listener.withdraw(life.held)
                self.do(life.withdrawn(count, self._monotonic()))
            case EndPull(life):
                assert life.held is not None
                if (puller := self._pullers.pop(life.held, None)) is not None:
                    puller.cancel()
            case Commit(life, offset):
                self._start(life, self._commit(life, offset))
            case Unlock(life):
                self._start(life, self._unlock(life))
            case Gone(life):
                self._gone(life)
            case Again(seconds):
                if not self._is_closed:
                    asyncio.get_running_loop().call_later(seconds, self._soon)
            case Tell(text, is_warning):
                level = logging.WARNING if is_warning else logging.INFO
                logger.log(level, "%s group=%s", text, self._group)
            case _:
                raise AssertionError(wanted)

    # Questions to brokers.

    async def _ask_owner(self, life: QueueLife, owner: str) -> None:
        assert self._handover is not None
        try:
            has_queue = await self._handover.has_queue(owner, life.queue)
        except CometError as error:
            logger.info(
                "old owner cannot be asked group=%s queue=%s owner=%s reason=%s",
                self._group,
                life.queue,
                owner,
                error,
            )
            self.do(life.owner_silent(owner, self._monotonic()))
        else:
            self.do(life.owner_answered(owner, self._monotonic(), has_queue=has_queue))

    async def _lock(self, life: QueueLife) -> None:
        assert self._locks is not None
        answer = await self._locks.lock([life.queue])
        self.do(life.lock_answered(self._monotonic(), is_ours=life.queue in answer.locked))

    async def _find_start(self, life: QueueLife) -> None:
        try:
            offset = await self._start_offset(life.queue)
        except CometError as error:
            logger.warning(
                "queue not taken group=%s queue=%s reason=%s", self._group, life.queue, error
            )
            self.do(life.failed(self._monotonic()))
        else:
            self.do(life.start_found(offset, self._monotonic()))

    async def _commit(self, life: QueueLife, offset: int) -> None:
        await self._offsets.commit({life.queue: offset})
        self.do(life.committed(self._monotonic()))

    async def _unlock(self, life: QueueLife) -> None:
        assert self._locks is not None
        await self._locks.unlock([life.queue])
        self.do(life.unlocked())

    def _start(self, life: QueueLife, work: Coroutine[Any, Any, None]) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.error("failed group=%s %r", self._group, life, exc_info=error)
                self.do(life.failed(self._monotonic()))

        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(ended)

    # What is done at once.

    def _begin(self, life: QueueLife) -> None:
        held = life.held
        assert held is not None
        puller = self._pullers[held] = self._make_puller(life)
        self._listener.begin(held)
        task = puller.start()
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._pull_ended(life, task))
        logger.info(
            "queue taken group=%s queue=%s offset=%d", self._group, life.queue, life.position
        )

    def _pull_ended(self, life: QueueLife, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The state machine notices after a while that nothing is pulled, and restarts the queue.
            logger.error("pulling ended group=%s queue=%s", self._group, life.queue, exc_info=error)

    def _deliver(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None:
        if held.is_retry:
            for message in messages:
                origin = message.properties.get(RETRY_TOPIC)
                if origin is not None:
                    message.topic = self._unwrap_topic(origin)
        self._listener.deliver(held, messages)

    def _gone(self, life: QueueLife) -> None:
        if (timer := self._timers.pop(life, None)) is not None:
            timer.cancel()
        if life.held is not None:
            logger.info(
                "queue left group=%s queue=%s offset=%d", self._group, life.queue, life.position
            )
            self._on_left(life.held)
        self._is_changed.set()

    def _set_timer(self, life: QueueLife, at: float) -> None:
        if (before := self._timers.pop(life, None)) is not None:
            before.cancel()
        if not self._is_closed:
            self._timers[life] = asyncio.get_running_loop().call_later(
                max(0.0, at - self._monotonic()), self._wake, life
            )

    def _wake(self, life: QueueLife) -> None:
        self._timers.pop(life, None)
        self.do(life.wake(self._monotonic()))
