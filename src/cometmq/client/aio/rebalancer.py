"""Holds the queues that are this client's: takes new ones, lets go of others without loss or repetition.

    not ours -> taking: wait for the old owner, lock (orderly), find the start -> held -> leaving: stop pulling, let
    listeners end, commit the position, unlock -> not ours

Sharing out is computed in ``core.rebalance``. Taking and leaving run side by side for all queues.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from cometmq.base.errors import CometError
from cometmq.client.aio.handover import Handover
from cometmq.client.aio.held_queue import HeldQueue
from cometmq.client.aio.instance import ClientInstance
from cometmq.client.aio.offsets import OffsetStore
from cometmq.client.aio.puller import Puller
from cometmq.client.aio.queue_locks import QueueLocks
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.core.process_queue import OrderlyQueue, ProcessQueue
from cometmq.client.core.publish_queues import subscribe_queues
from cometmq.client.core.rebalance import find_strategy, plan, previous_owner, share_of
from cometmq.client.errors import NoRoute
from cometmq.model.message_queue import MessageQueue
from cometmq.model.received_message import ReceivedMessage

logger = logging.getLogger("cometmq.client")

SOON_SECONDS: Final = 1.0
"""When to try again after something could not be done."""
QUICK_TRIES_MAX: Final = 60
"""So many times in a row a topic without a route is looked for soon; then at the usual interval."""
STUCK_SECONDS: Final = 120.0
"""A queue whose puller has done nothing for so long is started anew."""
LOCK_AGAIN_SECONDS: Final = 0.2
BROKER_LOCK_SECONDS: Final = 60.0
"""A lock older than this may have been another client's in between."""
PULL_SETTLE_SECONDS: Final = 0.2
ASKED_MEMBERS_MAX: Final = 8


class QueueListener(Protocol):
    """The concurrent or the orderly one."""

    def begin(self, held: HeldQueue) -> None: ...

    def deliver(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None: ...

    async def drain(self, held: HeldQueue, timeout: float) -> bool: ...


@dataclass(frozen=True, slots=True)
class _Entry:
    held: HeldQueue
    puller: Puller


class Rebalancer:
    """Args:
    topics: those that are subscribed now.
    start_offset: finds where to begin in a queue.
    make_puller: for a queue that was taken; given what to do when its offset turns out illegal.
    locks: for orderly consumption in clustering.
    handover: None when broadcasting.
    soon: asks for another round.
    on_left: told of each queue that was given up.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        *,
        config: PushConsumerConfig,
        is_orderly: bool,
        topics: Callable[[], Iterable[str]],
        offsets: OffsetStore,
        start_offset: Callable[[MessageQueue], Awaitable[int]],
        listener: QueueListener,
        make_puller: Callable[[HeldQueue, Callable[[int], None]], Puller],
        locks: QueueLocks | None,
        handover: Handover | None,
        soon: Callable[[], None],
        on_left: Callable[[HeldQueue], None],
    ) -> None:
        self._instance = instance
        self._group = group
        self._config = config
        self._is_orderly = is_orderly
        self._topics = topics
        self._offsets = offsets
        self._start_offset = start_offset
        self._listener = listener
        self._make_puller = make_puller
        self._locks = locks
        self._handover = handover
        self._soon = soon
        self._on_left = on_left
        self._strategy = find_strategy(config.allocation)
        self._clock = instance.clock
        self._entries: dict[MessageQueue, _Entry] = {}
        self._taking: dict[MessageQueue, asyncio.Task[None]] = {}
        self._leaving: dict[MessageQueue, asyncio.Task[None]] = {}
        self._leaving_held: dict[MessageQueue, HeldQueue] = {}
        self._resets: dict[MessageQueue, int] = {}
        self._members: dict[str, list[str]] = {}
        self._quick_tries = 0
        self._is_closing = False

    @property
    def held(self) -> Mapping[MessageQueue, HeldQueue]:
        return {queue: entry.held for queue, entry in self._entries.items()}

    @property
    def leaving(self) -> Mapping[MessageQueue, HeldQueue]:
        """Queues that are not given up yet."""
        return self._leaving_held

    @property
    def taking(self) -> Iterable[MessageQueue]:
        return self._taking.keys()

    async def run_once(self) -> float | None:
        """Share all topics out anew; seconds until the next try, if that should be soon."""
        topics = set(self._topics())
        for queue in [*self._entries, *self._taking]:
            if queue.topic not in topics:
                self._drop(queue)
        is_complete = True
        for topic in sorted(topics):
            try:
                is_complete &= await self._share_out(topic)
            except NoRoute:
                logger.debug("topic has no route yet group=%s topic=%s", self._group, topic)
                is_complete = False
            except CometError as error:
                logger.warning(
                    "queues not shared out group=%s topic=%s reason=%s", self._group, topic, error
                )
                is_complete = False
        if is_complete:
            self._quick_tries = 0
            return None
        self._quick_tries += 1
        return SOON_SECONDS if self._quick_tries <= QUICK_TRIES_MAX else None

    async def renew_locks(self) -> None:
        """Renew the locks of all held queues; one that was lost is started anew once it is ours again."""
        if self._locks is None or not self._entries:
            return
        asked_at = self._clock.monotonic()
        answer = await self._locks.lock(list(self._entries))
        for queue in answer.locked | answer.refused:
            entry = self._entries.get(queue)
            if entry is None:
                continue
            since = entry.held.locked_at
            is_sure = since is not None and asked_at - since < BROKER_LOCK_SECONDS
            if queue in answer.locked and is_sure:
                entry.held.locked_at = asked_at
            else:
                logger.warning("queue lock was lost group=%s queue=%s", self._group, queue)
                entry.held.locked_at = None
                self._leave(queue, commit=False)

    def restart(self, queue: MessageQueue, offset: int) -> asyncio.Task[None] | None:
        """Go on from another offset: what is in work ends, what was pulled is forgotten.

        A queue that is just being taken or left has the offset in the end, too. None when there is nothing to wait for.
        """
        if queue in self._entries:
            return self._leave(queue, offset=offset)
        if queue in self._leaving or queue in self._taking:
            self._resets[queue] = offset
        return self._leaving.get(queue)

    async def close(self, timeout: float) -> None:
        """Let go of everything; what listeners do not end in time is not committed and will be delivered again."""
        self._is_closing = True
        for task in self._taking.values():
            task.cancel()
        if self._taking:
            await asyncio.wait(self._taking.values())
        for queue in list(self._entries):
            self._leave(queue, timeout=timeout)
        if self._leaving:
            await asyncio.wait(self._leaving.values())
        if self._handover is not None:
            await self._handover.close()

    # Sharing out.

    async def _share_out(self, topic: str) -> bool:
        queues = subscribe_queues(topic, await self._instance.route(topic))
        members: list[str] = []
        if self._config.is_broadcast:
            mine = queues
        else:
            members = await self._find_members(topic)
            mine = share_of(self._strategy, self._instance.client_id, queues, members)
        before = self._members.get(topic)
        if before is None:
            before = [member for member in members if member != self._instance.client_id]
        self._members[topic] = members
        present = [queue for queue in (*self._entries, *self._taking) if queue.topic == topic]
        changes = plan(mine, present, self._stuck())
        if changes.drop or changes.take:
            logger.info(
                "queues shared out group=%s topic=%s members=%d mine=%d drop=%d take=%d",
                self._group,
                topic,
                len(members),
                len(mine),
                len(changes.drop),
                len(changes.take),
            )
        for queue in changes.drop:
            self._drop(queue)
        for queue in changes.take:
            if queue not in self._leaving:
                self._take(queue, self._old_owners(queue, queues, before, members))
        # A queue that is still leaving asks for another round when it has left.
        return True

    async def _find_members(self, topic: str) -> list[str]:
        members = await self._instance.consumer_ids(topic, self._group)
        if self._instance.client_id not in members:
            # A broker that was restarted knows only those whose heartbeat it has seen since.
            await self._instance.heartbeat()
            members = await self._instance.consumer_ids(topic, self._group)
        return members

    def _old_owners(
        self,
        queue: MessageQueue,
        queues: Sequence[MessageQueue],
        before: Sequence[str],
        members: Sequence[str],
    ) -> list[str]:
        """Other clients that may have the queue and are still there to hand it over.

        Members may have changed twice while somebody finishes what it had before, so in a small group all are asked.
        """
        if self._handover is None or not self._config.handover_ms:
            return []
        others = [member for member in members if member != self._instance.client_id]
        if len(others) <= ASKED_MEMBERS_MAX:
            return others
        owner = previous_owner(self._strategy, queue, queues, before)
        return [owner] if owner is not None and owner in others else []

    def _stuck(self) -> list[MessageQueue]:
        oldest = self._clock.monotonic() - STUCK_SECONDS
        return [
            queue
            for queue, entry in self._entries.items()
            if entry.held.last_pull < oldest and entry.puller.is_due
        ]

    # Taking and leaving.

    def _take(self, queue: MessageQueue, old_owners: list[str]) -> None:
        task = asyncio.get_running_loop().create_task(self._take_now(queue, old_owners))
        self._taking[queue] = task
        task.add_done_callback(lambda task: self._taken(queue, task))

    async def _take_now(self, queue: MessageQueue, old_owners: list[str]) -> None:
        is_locked = False
        locked_at = 0.0
        try:
            if old_owners and self._handover is not None:
                await self._handover.wait(queue, old_owners, self._config.handover_ms / 1000)
            if self._locks is not None:
                # From the first question on: whoever gives up meanwhile does not know the answer.
                is_locked = True
                locked_at = await self._lock(queue, self._locks)
            offset = await self._start_offset(queue)
            while (reset := self._resets.pop(queue, None)) is not None:
                offset = reset
                await self._offsets.commit({queue: offset})
        except asyncio.CancelledError:
            if is_locked and self._locks is not None:
                await self._locks.unlock([queue])
            raise
        except CometError as error:
            logger.warning("queue not taken group=%s queue=%s reason=%s", self._group, queue, error)
            self._soon_after(SOON_SECONDS)
            return
        process = OrderlyQueue(offset) if self._is_orderly else ProcessQueue(offset)
        held = HeldQueue(queue, process, now=self._clock.monotonic(), now_ms=self._clock.wall_ms())
        if is_locked:
            held.locked_at = locked_at
        puller = self._make_puller(held, lambda offset: self._correct(queue, offset))
        self._entries[queue] = _Entry(held, puller)
        self._listener.begin(held)
        puller.start()
        logger.info("queue taken group=%s queue=%s offset=%d", self._group, queue, offset)

    def _taken(self, queue: MessageQueue, task: asyncio.Task[None]) -> None:
        del self._taking[queue]
        self._resets.pop(queue, None)
        if task.cancelled():
            # It may have become ours again meanwhile.
            self._soon_after(0.0)
        elif (error := task.exception()) is not None:
            logger.error("queue not taken group=%s queue=%s", self._group, queue, exc_info=error)
            self._soon_after(SOON_SECONDS)

    async def _lock(self, queue: MessageQueue, locks: QueueLocks) -> float:
        """When the lock was asked for that was then given. Tries until the queue is no longer ours to take."""
        while True:
            asked_at = self._clock.monotonic()
            if queue in (await locks.lock([queue])).locked:
                return asked_at
            await asyncio.sleep(LOCK_AGAIN_SECONDS)

    def _drop(self, queue: MessageQueue) -> None:
        if queue in self._entries:
            self._leave(queue)
        elif (task := self._taking.get(queue)) is not None:
            task.cancel()

    def _correct(self, queue: MessageQueue, offset: int) -> None:
        if queue in self._entries:
            self._leave(queue, offset=offset)

    def _leave(
        self,
        queue: MessageQueue,
        *,
        commit: bool = True,
        offset: int | None = None,
        timeout: float | None = None,
    ) -> asyncio.Task[None]:
        entry = self._entries.pop(queue)
        entry.held.drop()
        self._leaving_held[queue] = entry.held
        if timeout is None:
            timeout = self._config.handover_ms / 1000
        task = asyncio.get_running_loop().create_task(
            self._leave_now(entry, commit, offset, timeout)
        )
        self._leaving[queue] = task
        task.add_done_callback(lambda task: self._left(queue, task))
        return task

    async def _leave_now(
        self, entry: _Entry, commit: bool, offset: int | None, timeout: float
    ) -> None:
        held, queue = entry.held, entry.held.queue
        is_rested = await self._listener.drain(held, timeout)
        await entry.puller.stop(PULL_SETTLE_SECONDS)
        held.is_released = True
        if not is_rested:
            logger.warning(
                "queue let go with messages in work, which will be delivered again group=%s queue=%s jobs=%d",
                self._group,
                queue,
                held.jobs_open,
            )
        position = held.process.commit_offset if offset is None else offset
        position = self._resets.pop(queue, position)
        if commit:
            await self._offsets.commit({queue: position})
            while (reset := self._resets.pop(queue, None)) is not None:
                position = reset
                await self._offsets.commit({queue: position})
        if self._locks is not None:
            await self._locks.unlock([queue])
        logger.info("queue left group=%s queue=%s offset=%d", self._group, queue, position)

    def _left(self, queue: MessageQueue, task: asyncio.Task[None]) -> None:
        del self._leaving[queue]
        self._resets.pop(queue, None)
        self._on_left(self._leaving_held.pop(queue))
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error(
                "queue not left cleanly group=%s queue=%s", self._group, queue, exc_info=error
            )
        # It may have become ours again meanwhile.
        self._soon_after(0.0)

    def _soon_after(self, seconds: float) -> None:
        if not self._is_closing:
            asyncio.get_running_loop().call_later(seconds, self._soon)
