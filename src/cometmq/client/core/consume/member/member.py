"""The queues of one member of a consumer group: which to take, which to let go of, and when. No I/O.

The group's queues are shared out by ``rebalance``; what becomes of each one is decided in its ``queue_life``. A queue
has one life at a time: one that is ours again while it is still being let go of is taken in the round that its end
asks for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from cometmq.client.core.consume.member.held_queue import HeldQueue
from cometmq.client.core.consume.member.instructions import (
    NOTHING,
    Instruction,
    Instructions,
    Tell,
)
from cometmq.client.core.consume.member.queue_life import SOON_SECONDS, QueueLife
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.client.core.consume.rebalance import plan, previous_owner, share_of
from cometmq.model.message_queue import MessageQueue

QUICK_TRIES_MAX: Final = 60
"""How many times in a row a topic without a route is looked up soon again; then at the usual interval."""
ASKED_MEMBERS_MAX: Final = 8


class Member:
    def __init__(self, client_id: str, rules: MemberRules) -> None:
        self.client_id = client_id
        self.rules = rules
        self._lives: dict[MessageQueue, QueueLife] = {}
        self._members: dict[str, Sequence[str]] = {}
        self._quick_tries = 0
        self._is_closing = False

    @property
    def lives(self) -> Collection[QueueLife]:
        return self._lives.values()

    def life(self, queue: MessageQueue) -> QueueLife | None:
        return self._lives.get(queue)

    @property
    def held(self) -> dict[MessageQueue, HeldQueue]:
        return {
            life.queue: life.held for life in self.lives if life.is_held and life.held is not None
        }

    @property
    def leaving(self) -> dict[MessageQueue, HeldQueue]:
        """Those that are not given up yet."""
        return {
            life.queue: life.held
            for life in self.lives
            if life.is_leaving and life.held is not None
        }

    @property
    def taking(self) -> list[MessageQueue]:
        return [life.queue for life in self.lives if life.held is None]

    # Sharing out.

    def keep_topics(self, topics: Collection[str], now: float) -> Instructions:
        """Let go of the queues of all other topics."""
        self._members = {topic: self._members[topic] for topic in topics if topic in self._members}
        return self._drop(
            [life.queue for life in self.lives if life.queue.topic not in topics], now
        )

    def share_out(
        self,
        topic: str,
        queues: Sequence[MessageQueue],
        members: Sequence[str],
        now: float,
        *,
        is_suspended: bool = False,
    ) -> Instructions:
        """Take and let go of queues, so that this member has its share of a topic.

        Raises:
            UsageError: a strategy of the user's own chose a queue that the topic does not have.
        """
        if self._is_closing:
            return NOTHING
        rules = self.rules
        mine = queues
        if not rules.is_broadcast:
            mine = share_of(rules.strategy, self.client_id, queues, members)
        others = [member for member in members if member != self.client_id]
        before = self._members.get(topic, others)
        self._members[topic] = members
        present = [life for life in self.lives if life.queue.topic == topic and life.is_wanted]
        stuck = [life.queue for life in present if not is_suspended and life.is_stuck(now)]
        changes = plan(mine, [life.queue for life in present], stuck)
        todo: list[Instruction] = []
        if changes.drop or changes.take:
            todo.append(
                Tell(
                    f"queues shared out topic={topic} members={len(members)} mine={len(mine)} "
                    f"drop={len(changes.drop)} take={len(changes.take)}"
                )
            )
        todo += self._drop(changes.drop, now)
        for queue in changes.take:
            if queue not in self._lives:
                life = self._lives[queue] = QueueLife(queue, rules, self._forget)
                todo += life.take(self._old_owners(queue, queues, before, others), now)
        return todo

    def round_ended(self, *, is_complete: bool) -> float | None:
        """Seconds until the next round, if that should be soon."""
        if is_complete:
            self._quick_tries = 0
            return None
        self._quick_tries += 1
        return SOON_SECONDS if self._quick_tries <= QUICK_TRIES_MAX else None

    def _old_owners(
        self,
        queue: MessageQueue,
        queues: Sequence[MessageQueue],
        before: Iterable[str],
        others: Sequence[str],
    ) -> Sequence[str]:
        """Members that may have the queue and are still there to hand it over.

        Members may have changed twice while somebody finishes what it had before, so in a small group all are asked.
        """
        if not self.rules.asks_old_owners:
            return ()
        if len(others) <= ASKED_MEMBERS_MAX:
            return others
        owner = previous_owner(self.rules.strategy, queue, queues, before)
        return [owner] if owner is not None and owner in others else ()

    def _drop(self, queues: Iterable[MessageQueue], now: float) -> list[Instruction]:
        return [todo for queue in queues for todo in self._lives[queue].drop(now)]

    def _forget(self, life: QueueLife) -> None:
        del self._lives[life.queue]

    # Other events.

    def locks_to_renew(self) -> list[QueueLife]:
        """Ask for all of these at once, then report ``lock_renewed`` for those whose broker answered."""
        return [life for life in self.lives if life.is_held] if self.rules.has_locks else []

    def reset(self, queue: MessageQueue, offset: int, now: float) -> Instructions:
        """An operator moved the group."""
        life = self._lives.get(queue)
        return NOTHING if life is None else life.reset(offset, now)

    def close(self, timeout: float, now: float) -> Instructions:
        """Let go of everything; done when no lives are left."""
        self._is_closing = True
        return [todo for life in list(self.lives) for todo in life.close(timeout, now)]
