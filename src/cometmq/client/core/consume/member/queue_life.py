"""A queue of a member from the moment it is assigned until it is gone: every decision on the way. No I/O.

    state        what happens                                ends with
    WAITING      old owners finish with the queue            owner_answered, owner_silent, time
    LOCKING      the broker locks it (orderly)               lock_answered
    STARTING     the offset to begin at is looked up         start_found, failed
    MOVING       an operator's reset is stored first         committed, failed
    HELD         pulled and consumed                         drop, reset, offset_illegal, lock lost, close
    DRAINING     listeners finish what they have begun       withdrawn, the last job's end, time
    SETTLING     a pull that carries an old position ends    pulled, pull_failed, time
    COMMITTING   the position is stored                      committed, failed
    UNLOCKING    the broker unlocks it (orderly)             unlocked
    GONE

The states follow each other in this order. Some are skipped; none comes twice, unless another reset arrives while a
position is being stored. A queue that starts over gets a new life, so a late answer is harmless: it reaches a life that
has moved on and ignores it.

Every state but HELD has a deadline (``Wake``): a good, a bad and a missing answer lead to the same end, only later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Final

from cometmq.client.core.consume.flow_limits import FlowLimits
from cometmq.client.core.consume.member.held_queue import HeldQueue
from cometmq.client.core.consume.member.instructions import (
    NOTHING,
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
    Tell,
    Unlock,
    Wake,
    Withdraw,
)
from cometmq.client.core.consume.member.old_owners import OldOwners
from cometmq.client.core.consume.member.pulling import Pulling, PullStep
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

SOON_SECONDS: Final = 1.0
"""When to try again after something could not be done."""
LOCK_AGAIN_SECONDS: Final = 0.2
BROKER_LOCK_SECONDS: Final = 60.0
"""A lock older than this may have been another client's in between."""
PULL_SETTLE_SECONDS: Final = 0.2


class State(Enum):
    WAITING = "waiting"
    LOCKING = "locking"
    STARTING = "starting"
    MOVING = "moving"
    HELD = "held"
    DRAINING = "draining"
    SETTLING = "settling"
    COMMITTING = "committing"
    UNLOCKING = "unlocking"
    GONE = "gone"


_TAKING: Final = frozenset({State.WAITING, State.LOCKING, State.STARTING, State.MOVING})
_LEAVING: Final = frozenset({State.DRAINING, State.SETTLING, State.COMMITTING})


class QueueLife:
    """Args:
    on_gone: told when it is over.
    """

    def __init__(
        self, queue: MessageQueue, rules: MemberRules, on_gone: Callable[[QueueLife], None]
    ) -> None:
        self.queue = queue
        self.state = State.WAITING
        self.held: HeldQueue | None = None
        """From HELD on, and to the end."""
        self.position = 0
        """Where it began, and in the end the position that was left to others."""
        self._rules = rules
        self._on_gone = on_gone
        self._owners = OldOwners((), 0.0, seconds=0.0, answer_seconds=0.0)
        self._pulling: Pulling | None = None
        self._deadline = 0.0
        self._lock_asked_at: float | None = None
        self._reset: int | None = None
        """Where an operator or the broker wants the group to go on."""
        self._commits = True
        self._again_seconds = 0.0

    @property
    def is_wanted(self) -> bool:
        """Held, or on the way to it."""
        return self.state is State.HELD or self.state in _TAKING

    @property
    def is_held(self) -> bool:
        return self.state is State.HELD

    @property
    def is_leaving(self) -> bool:
        """It was held, and others may not have it yet."""
        return self.held is not None and self.state not in (State.HELD, State.GONE)

    @property
    def is_gone(self) -> bool:
        return self.state is State.GONE

    def __repr__(self) -> str:
        return f"<QueueLife {self.queue} {self.state.value}>"

    # Taking.

    def take(self, old_owners: Iterable[str], now: float) -> Instructions:
        """It was assigned to this member."""
        rules = self._rules
        self._owners = OldOwners(
            old_owners, now, seconds=rules.handover_seconds, answer_seconds=rules.answer_seconds
        )
        return self._wait(now)

    def owner_answered(self, owner: str, now: float, *, has_queue: bool) -> Instructions:
        if self.state is not State.WAITING:
            return NOTHING
        self._owners.answered(owner, now, has_queue=has_queue)
        return self._wait(now)

    def owner_silent(self, owner: str, now: float) -> Instructions:
        """It could not be asked."""
        if self.state is not State.WAITING:
            return NOTHING
        self._owners.silent(owner, now)
        return self._wait(now)

    def _wait(self, now: float) -> Instructions:
        ask, passed_over = self._owners.due(now)
        todo: list[Instruction] = [
            Tell(
                f"old owner does not let go, taken all the same queue={self.queue} owner={owner}",
                is_warning=True,
            )
            for owner in passed_over
        ]
        todo += [AskOwner(self, owner) for owner in ask]
        if self._owners.is_over:
            return [*todo, *self._lock(now)]
        return [*todo, Wake(self, self._owners.next_at())]

    def _lock(self, now: float) -> Instructions:
        if not self._rules.has_locks:
            return self._find_start(now)
        if self._lock_asked_at is None:
            # If two requests are under way the first one counts: the lock may be that old.
            self._lock_asked_at = now
        return self._enter(State.LOCKING, now, Lock(self))

    def lock_answered(self, now: float, *, is_ours: bool) -> Instructions:
        """Not ours: another client has the lock, or the broker did not answer."""
        if self.state is not State.LOCKING or self._lock_asked_at is None:
            return NOTHING
        if is_ours:
            return self._find_start(now)
        self._lock_asked_at = None
        return self._wake_after(LOCK_AGAIN_SECONDS, now)

    def _find_start(self, now: float) -> Instructions:
        return self._enter(State.STARTING, now, FindStart(self))

    def start_found(self, offset: int, now: float) -> Instructions:
        if self.state is not State.STARTING:
            return NOTHING
        self.position = offset
        return self._move(now) if self._reset is not None else self._hold(now)

    def _move(self, now: float) -> Instructions:
        assert self._reset is not None
        self.position, self._reset = self._reset, None
        return self._enter(State.MOVING, now, Commit(self, self.position))

    def _hold(self, now: float) -> Instructions:
        self.state = State.HELD
        self.held = HeldQueue(
            self.queue, self.position, rules=self._rules, now=now, on_rested=self._rested
        )
        self.held.locked_at = self._lock_asked_at
        self._pulling = Pulling(self.held, self._rules)
        return (Begin(self),)

    def _give_up(self, again_seconds: float, now: float) -> Instructions:
        """Stop taking it. A lock is given back from the first question on: the answer may still be on its way."""
        self._again_seconds = again_seconds
        return self._unlock(now) if self.state is not State.WAITING else self._end()

    # While it is held.

    def next_pull(
        self, now: float, *, limits: FlowLimits, is_suspended: bool, is_subscribed: bool
    ) -> PullStep:
        """What the puller has to do now."""
        assert self._pulling is not None
        return self._pulling.next(
            now, limits=limits, is_suspended=is_suspended, is_subscribed=is_subscribed
        )

    def pulled(
        self, messages: Sequence[ReceivedMessage], next_offset: int, now: float
    ) -> Instructions:
        """A pull was answered, with or without messages. Those of a dropped queue are left to the next owner."""
        assert self.held is not None
        assert self._pulling is not None
        self._pulling.ended(now)
        if self.state is not State.HELD:
            return self._settled(now)
        added = self.held.process.add(messages, next_offset)
        if not added:
            return NOTHING
        self.held.pulled_count += len(added)
        return (Deliver(self.held, added),)

    def offset_illegal(self, next_offset: int, now: float) -> Instructions:
        """The broker does not have the offset that was asked for, and says where to go on."""
        assert self.held is not None
        assert self._pulling is not None
        self._pulling.ended(now)
        if self.state is not State.HELD:
            return self._settled(now)
        return [
            Tell(
                f"offset is not there queue={self.queue} "
                f"offset={self.held.process.next_offset} next={next_offset}",
                is_warning=True,
            ),
            *self._leave(now, offset=next_offset),
        ]

    def pull_failed(self, now: float, *, by_flow_control: bool = False) -> Instructions:
        assert self._pulling is not None
        self._pulling.failed(now, by_flow_control=by_flow_control)
        return self._settled(now)

    def is_stuck(self, now: float) -> bool:
        """Whether the puller seems to have died."""
        return self.is_held and self._pulling is not None and self._pulling.is_stuck(now)

    def lock_renewed(self, asked_at: float, now: float, *, is_ours: bool) -> Instructions:
        """The broker was asked at ``asked_at`` to renew the lock."""
        held = self.held
        if held is None or not self.is_held:
            return NOTHING
        # After a gap this long another client may have held the lock, consumed and committed.
        is_unbroken = held.locked_at is not None and asked_at - held.locked_at < BROKER_LOCK_SECONDS
        if is_ours and is_unbroken:
            held.locked_at = asked_at
            return NOTHING
        held.locked_at = None
        return [
            Tell(f"queue lock was lost queue={self.queue}", is_warning=True),
            *self._leave(now, commits=False),
        ]

    # Letting go of it.

    def drop(self, now: float) -> Instructions:
        """It is not to be this member's any more, or is to be started anew."""
        if self.state in _TAKING:
            return self._give_up(0.0, now)
        return self._leave(now) if self.is_held else NOTHING

    def reset(self, offset: int, now: float) -> Instructions:
        """Go on from another offset: what is in work ends, what was pulled is forgotten.

        A queue that is just being taken or let go of has this offset in the end, too.
        """
        if self.is_held:
            return self._leave(now, offset=offset)
        if self.state in _TAKING or self.state in _LEAVING:
            self._reset = offset
        return NOTHING

    def close(self, timeout: float, now: float) -> Instructions:
        """The member leaves its group. What listeners do not finish in time is delivered again."""
        return self._leave(now, timeout=timeout) if self.is_held else self.drop(now)

    def _leave(
        self,
        now: float,
        *,
        offset: int | None = None,
        commits: bool = True,
        timeout: float | None = None,
    ) -> Instructions:
        assert self.held is not None
        self.held.is_dropped = True
        self._reset = offset
        self._commits = commits
        self.state = State.DRAINING
        timeout = self._rules.handover_seconds if timeout is None else timeout
        return [Withdraw(self), *self._wake_after(timeout, now)]

    def withdrawn(self, count: int, now: float) -> Instructions:
        """So many jobs were not begun and never will be."""
        assert self.held is not None
        return self.held.close_jobs(count, now)

    def _rested(self, now: float) -> Instructions:
        return self._settle(now) if self.state is State.DRAINING else NOTHING

    def _settle(self, now: float) -> Instructions:
        assert self._pulling is not None
        if not self._pulling.may_set_back(self._last_position(), now):
            return self._release(now)
        self.state = State.SETTLING
        return self._wake_after(PULL_SETTLE_SECONDS, now)

    def _settled(self, now: float) -> Instructions:
        return self._release(now) if self.state is State.SETTLING else NOTHING

    def _release(self, now: float) -> Instructions:
        assert self.held is not None
        self.held.is_released = True
        self.position, self._reset = self._last_position(), None
        if not self._commits:
            return [EndPull(self), *self._unlock(now)]
        commit = Commit(self, self.position)
        return [EndPull(self), *self._enter(State.COMMITTING, now, commit)]

    def _last_position(self) -> int:
        assert self.held is not None
        return self.held.process.commit_offset if self._reset is None else self._reset

    def _unlock(self, now: float) -> Instructions:
        if not self._rules.has_locks:
            return self._end()
        return self._enter(State.UNLOCKING, now, Unlock(self))

    def unlocked(self) -> Instructions:
        """Or not, then the broker gives the queue away after a minute."""
        return self._end() if self.state is State.UNLOCKING else NOTHING

    def _end(self) -> Instructions:
        self.state = State.GONE
        self._on_gone(self)
        # It may have become ours again meanwhile.
        return [Gone(self), Again(self._again_seconds)]

    # Taking and letting go.

    def committed(self, now: float) -> Instructions:
        """The position is stored, or at least the broker was asked."""
        if self.state is State.MOVING:
            return self._move(now) if self._reset is not None else self._hold(now)
        if self.state is not State.COMMITTING:
            return NOTHING
        return self._unlock(now) if self._reset is None else self._settle(now)

    def failed(self, now: float) -> Instructions:
        """What was asked for last cannot be done."""
        if self.state in _TAKING:
            return self._give_up(SOON_SECONDS, now)
        if self.state is State.COMMITTING:
            return self._unlock(now)
        return self.unlocked()

    def wake(self, now: float) -> Instructions:
        """Time has passed."""
        if self.state is State.WAITING:
            return self._wait(now)
        if self.state in (State.HELD, State.GONE):
            return NOTHING
        if now < self._deadline:
            return (Wake(self, self._deadline),)
        if self.state is State.LOCKING:
            return self._lock(now)
        if self.state is State.DRAINING:
            assert self.held is not None
            late = Tell(
                "queue let go with messages in work, which will be delivered again "
                f"queue={self.queue} jobs={self.held.jobs_open}",
                is_warning=True,
            )
            return [late, *self._settle(now)]
        if self.state is State.SETTLING:
            return self._release(now)
        return self.failed(now)

    def _enter(self, state: State, now: float, instruction: Instruction) -> Instructions:
        """Do something that is answered."""
        self.state = state
        return [instruction, *self._wake_after(self._rules.answer_seconds, now)]

    def _wake_after(self, seconds: float, now: float) -> Instructions:
        self._deadline = now + seconds
        return (Wake(self, self._deadline),)
