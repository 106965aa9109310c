"""Shares the group's queues out: asks for routes and members, and has the state machine decide what changes.

``core.consume.member`` decides, ``queue_work`` carries out; here is what comes from the outside: rounds, lock renewals,
resets and the end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from cometmq.base.errors import CometError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.push.queue_locks import QueueLocks
from cometmq.client.aio.push.queue_work import QueueWork
from cometmq.client.core.consume.member.held_queue import HeldQueue
from cometmq.client.core.consume.member.member import Member
from cometmq.client.core.consume.member.queue_life import QueueLife
from cometmq.client.core.send.publish_queues import subscribe_queues
from cometmq.client.errors import NoRoute
from cometmq.model.message_queue import MessageQueue

logger = logging.getLogger("cometmq.client")


class Rebalancer:
    """Args:
    topics: those that are subscribed now.
    locks: for orderly consumption in clustering.
    is_running: cleared while the consumer is suspended.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        member: Member,
        work: QueueWork,
        *,
        topics: Callable[[], Iterable[str]],
        locks: QueueLocks | None,
        is_running: asyncio.Event,
    ) -> None:
        self._instance = instance
        self._group = group
        self._member = member
        self._work = work
        self._topics = topics
        self._locks = locks
        self._is_running = is_running
        self._monotonic = instance.clock.monotonic

    @property
    def held(self) -> Mapping[MessageQueue, HeldQueue]:
        return self._member.held

    @property
    def leaving(self) -> Mapping[MessageQueue, HeldQueue]:
        """Queues that are not given up yet."""
        return self._member.leaving

    @property
    def taking(self) -> Iterable[MessageQueue]:
        return self._member.taking

    async def run_once(self) -> float | None:
        """Share all topics out anew; seconds until the next try, if that should be soon."""
        topics = set(self._topics())
        self._work.do(self._member.keep_topics(topics, self._monotonic()))
        is_complete = True
        for topic in sorted(topics):
            try:
                await self._share_out(topic)
            except NoRoute:
                logger.debug("topic has no route yet group=%s topic=%s", self._group, topic)
                is_complete = False
            except CometError as error:
                logger.warning(
                    "queues not shared out group=%s topic=%s reason=%s", self._group, topic, error
                )
                is_complete = False
        return self._member.round_ended(is_complete=is_complete)

    async def renew_locks(self) -> None:
        """Renew the locks of all held queues. A queue whose lock was lost restarts once it is ours again."""
        lives = self._member.locks_to_renew()
        if self._locks is None or not lives:
            return
        asked_at = self._monotonic()
        answer = await self._locks.lock([life.queue for life in lives])
        for life in lives:
            if life.queue in answer.locked or life.queue in answer.refused:
                is_ours = life.queue in answer.locked
                self._work.do(life.lock_renewed(asked_at, self._monotonic(), is_ours=is_ours))

    async def reset(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Go on from other offsets. Returns when queues that were held have been let go at their new offset."""
        lives: list[QueueLife] = []
        for queue, offset in offsets.items():
            self._work.do(self._member.reset(queue, offset, self._monotonic()))
            life = self._member.life(queue)
            if life is not None and life.is_leaving:
                lives.append(life)
        await self._work.until(lambda: all(life.is_gone for life in lives))

    async def close(self, timeout: float) -> None:
        """Let go of everything; what listeners do not end in time is not committed and will be delivered again."""
        self._work.do(self._member.close(timeout, self._monotonic()))
        try:
            await self._work.until(lambda: not self._member.lives)
        finally:
            await self._work.close()

    async def _share_out(self, topic: str) -> None:
        queues = subscribe_queues(topic, await self._instance.route(topic))
        members: list[str] = []
        if not self._member.rules.is_broadcast:
            members = await self._find_members(topic)
        self._work.do(
            self._member.share_out(
                topic,
                queues,
                members,
                self._monotonic(),
                is_suspended=not self._is_running.is_set(),
            )
        )

    async def _find_members(self, topic: str) -> list[str]:
        members = await self._instance.consumer_ids(topic, self._group)
        if self._instance.client_id not in members:
            # A broker that was restarted knows only those whose heartbeat it has seen since.
            await self._instance.heartbeat()
            members = await self._instance.consumer_ids(topic, self._group)
        return members
