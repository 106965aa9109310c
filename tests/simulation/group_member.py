"""A member of a group whose decisions are the real ones, and whose I/O and listener are played.

What ``client/aio/push`` does with tasks is done here and in ``group_loops`` with events of ``World``: instructions in,
answers back.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.simulation.group_loops import BATCH_MAX, SILENCE, OrderlyLoop, PullLoop
from tests.simulation.group_world import (
    CALL_SECONDS,
    QUEUES,
    RETRY,
    RETRY_QUEUE,
    TOPIC,
    Client,
    Link,
    World,
)

from cometmq.client.core.consume.member.held_queue import HeldQueue, Job, late_jobs
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
    Resubmit,
    ResumePull,
    RetryLater,
    Tell,
    Unlock,
    Wake,
    Withdraw,
)
from cometmq.client.core.consume.member.member import Member
from cometmq.client.core.consume.member.queue_life import (
    PULL_SETTLE_SECONDS,
    QueueLife,
    State,
)
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.client.core.consume.outcome import Verdict
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

WORKERS: Final = 3
REBALANCE_SECONDS: Final = 20.0
HEARTBEAT_SECONDS: Final = 30.0
SAVE_SECONDS: Final = 5.0
LOCK_SECONDS: Final = 20.0
CONSUME_SECONDS_MAX: Final = 60.0
CLOSE_SECONDS: Final = 30.0
SLACK_SECONDS: Final = 0.5


@dataclass
class Mood:
    """How listeners are today: how long they take, and how often they fail."""

    seconds_max: float = 0.05
    failures: float = 0.0


QUICK: Final = Mood()


class SimulatedMember:
    def __init__(self, world: World, client_id: str, rules: MemberRules) -> None:
        self.world = world
        self.client_id = client_id
        self.rules = rules
        self.member = Member(client_id, rules)
        self.mood = QUICK
        self.is_alive = True
        self.is_closing = False
        self.deaf_until = 0.0
        """Until then it does not notice that the group has changed."""
        self.link = Link(world)
        self._client = Client(
            self.link,
            has_queue=lambda queue: self.is_alive and self.member.life(queue) is not None,
            changed=self._if_alive(self.rebalance),
            reset=self._reset,
            seen_at=world.now,
        )
        self._waiting: deque[Instruction] = deque()
        self._is_busy = False
        self._states: dict[QueueLife, tuple[State, float]] = {}
        self._timers: dict[QueueLife, int] = {}
        self._pulls: dict[HeldQueue, PullLoop] = {}
        self._asking: dict[str, list[Callable[[Any], None]]] = {}
        self._jobs: deque[Job] = deque()
        self.running: list[Job | None] = [None] * WORKERS
        self._calls: dict[HeldQueue, OrderlyLoop] = {}
        self._round = 0

    def join(self) -> None:
        self._heartbeat()
        self._every(HEARTBEAT_SECONDS, self._heartbeat)
        self._every(REBALANCE_SECONDS, self.rebalance)
        self._every(SAVE_SECONDS, self._save)
        self._every(LOCK_SECONDS, self._renew_locks)
        self._every(CONSUME_SECONDS_MAX / 15, self._sweep)

    def leave(self) -> None:
        """End in good order."""
        if not self.is_closing:
            self.is_closing = True
            self.do(self.member.close(CLOSE_SECONDS, self.world.now))
            self._leave_if_empty()

    def crash(self) -> None:
        self.is_alive = False
        for held, loop in self._calls.items():
            loop.stop(held)
        for job in self.running:
            if job is not None:
                self.world.book.call_ended(job.held)

    def check_waits(self) -> None:
        """No queue is on its way for longer than it may."""
        for life in list(self._states):
            self._check_wait(life)

    def _check_wait(self, life: QueueLife) -> None:
        state, since = self._states[life]
        seconds = self.world.now - since
        assert seconds <= self._bound(state) + SLACK_SECONDS, (
            f"{self.client_id} was {state.value} for {seconds:.1f} s: {life}"
        )

    def _bound(self, state: State) -> float:
        answer, handover = self.rules.answer_seconds, self.rules.handover_seconds
        match state:
            case State.WAITING:
                # A question that was under way in the end, and a moment for one that could not be asked.
                return handover + answer + 1.0
            case State.LOCKING:
                # Until the old owner has let go; without it, until the broker forgets the lock, which is checked
                # in the end.
                return handover if self.world.is_healthy else math.inf
            case State.DRAINING:
                return CLOSE_SECONDS if self.is_closing else handover
            case State.SETTLING:
                return PULL_SETTLE_SECONDS
            case State.MOVING | State.COMMITTING:
                # Several resets one after the other.
                return answer * 4
            case State.STARTING | State.UNLOCKING:
                return answer
        return math.inf

    # Carrying out.

    def do(self, todo: Instructions) -> None:
        self._waiting.extend(todo)
        if self._is_busy:
            return
        self._is_busy = True
        while self._waiting:
            self._carry_out(self._waiting.popleft())
        self._is_busy = False
        self._note_states()
        if self.is_closing:
            self._leave_if_empty()

    def _note_states(self) -> None:
        for life in [*self._states, *self.member.lives]:
            state, _ = self._states.get(life, (None, 0.0))
            if state is not life.state:
                if state is not None:
                    self._check_wait(life)
                self._states[life] = (life.state, self.world.now)
            if life.is_gone:
                del self._states[life]

    def _carry_out(self, wanted: Instruction) -> None:
        world, broker, me = self.world, self.world.broker, self.client_id
        match wanted:
            case Wake(life, at):
                self._set_timer(life, at)
            case AskOwner(life, owner):
                self._ask(life, owner)
            case Lock(life):
                queue = life.queue
                self._call(
                    lambda: broker.lock(me, [queue]),
                    lambda got: life.lock_answered(world.now, is_ours=bool(got) and queue in got),
                )
            case FindStart(life):
                self._call(
                    lambda: broker.position(life.queue),
                    lambda offset: (
                        life.failed(world.now)
                        if offset is None
                        else life.start_found(offset, world.now)
                    ),
                )
            case Commit(life, offset):
                self._call(
                    lambda: broker.commit(life.queue, offset, is_last=True),
                    lambda _: life.committed(world.now),
                )
            case Unlock(life):
                self._call(lambda: broker.unlock(me, life.queue), lambda _: life.unlocked())
            case Begin(life):
                self._begin(life)
            case Deliver(held, messages):
                if self.rules.is_orderly:
                    self._calls[held].wake()
                else:
                    self._jobs.extend(held.open_jobs(messages, BATCH_MAX))
                    self._work()
            case ResumePull(held):
                if held in self._pulls:
                    self._pulls[held].soon()
            case RetryLater(held, messages, _):
                self._retry_later(held, list(messages), [])
            case Resubmit(held, messages, seconds):
                world.after(seconds, self._if_alive(lambda: self._resubmit(held, messages)))
            case Withdraw(life):
                self._withdraw(life)
            case EndPull(life):
                assert life.held is not None
                if life.held in self._pulls:
                    self._pulls.pop(life.held).is_over = True
            case Gone(life):
                self._timers.pop(life, None)
            case Again(seconds):
                world.after(seconds, self._if_alive(self.rebalance))
            case Tell():
                pass
            case _:
                raise AssertionError(wanted)

    def _begin(self, life: QueueLife) -> None:
        held = life.held
        assert held is not None
        if self.rules.is_orderly:
            held.jobs_open += 1
            self._calls[held] = OrderlyLoop(self, held)
        loop = self._pulls[held] = PullLoop(self, life)
        loop.soon()

    def _withdraw(self, life: QueueLife) -> None:
        held = life.held
        assert held is not None
        count = sum(job.held is held for job in self._jobs)
        self._jobs = deque(job for job in self._jobs if job.held is not held)
        if held in self._calls:
            self._calls[held].wake()
        self.do(life.withdrawn(count, self.world.now))

    def _set_timer(self, life: QueueLife, at: float) -> None:
        number = self._timers[life] = self._timers.get(life, 0) + 1

        def fire() -> None:
            if self._timers.get(life) == number:
                self.do(life.wake(self.world.now))

        self.world.at(max(at, self.world.now), self._if_alive(fire))

    def _ask(self, life: QueueLife, owner: str) -> None:
        """One question at a time to each owner, as ``Handover`` does it."""

        def told(has_queue: Any) -> None:
            now = self.world.now
            if has_queue:
                self.do(life.owner_answered(owner, now, has_queue=has_queue(life.queue)))
            else:
                self.do(life.owner_silent(owner, now))

        if owner in self._asking:
            self._asking[owner].append(told)
            return
        listeners = self._asking[owner] = [told]

        def answered(has_queue: Any) -> None:
            del self._asking[owner]
            for tell in listeners:
                tell(has_queue)

        self.call(lambda reply: self.world.broker.ask_owner(owner, reply), answered)

    # What a member does by the clock.

    def rebalance(self) -> None:
        if self.is_closing or self.world.now < self.deaf_until:
            return
        self._round += 1
        number = self._round
        self.do(self.member.keep_topics({TOPIC, RETRY}, self.world.now))

        def share_out(topic: str) -> None:
            def answered(members: Any) -> None:
                # A round that was overtaken by another one ends.
                if number != self._round or self.is_closing:
                    return
                if members is None:
                    self.world.after(1.0, self._if_alive(self.rebalance))
                elif self.client_id not in members:
                    self._heartbeat()
                    self.world.after(1.0, self._if_alive(self.rebalance))
                else:
                    queues = QUEUES if topic == TOPIC else [RETRY_QUEUE]
                    self.do(self.member.share_out(topic, queues, members, self.world.now))
                    if topic == TOPIC:
                        share_out(RETRY)

            self.call(lambda reply: reply(self.world.broker.members()), answered)

        share_out(TOPIC)

    def _heartbeat(self) -> None:
        self.link.up(lambda: self.world.broker.heartbeat(self.client_id, self._client))

    def _save(self) -> None:
        if self.is_closing:
            return
        for queue, held in self.member.held.items():
            self.link.up(partial(self.world.broker.commit, queue, held.process.commit_offset))

    def _renew_locks(self) -> None:
        lives = self.member.locks_to_renew()
        if not lives or self.is_closing:
            return
        asked_at = self.world.now
        queues = [life.queue for life in lives]

        def answered(locked: Any) -> None:
            for life in lives:
                if locked is not None:
                    is_ours = life.queue in locked
                    self.do(life.lock_renewed(asked_at, self.world.now, is_ours=is_ours))

        self.call(lambda reply: reply(self.world.broker.lock(self.client_id, queues)), answered)

    def _sweep(self) -> None:
        for job in late_jobs(self.running, self.world.now - CONSUME_SECONDS_MAX):
            self.do(job.held.abandon(job, self.world.now))

    def _reset(self, queue: MessageQueue, offset: int) -> None:
        if self.is_alive:
            self.do(self.member.reset(queue, offset, self.world.now))

    def _leave_if_empty(self) -> None:
        if self.is_alive and not self.member.lives:
            self.is_alive = False
            self.link.up(lambda: self.world.broker.unregister(self.client_id))

    # Listeners.

    def calls_ended(self, held: HeldQueue) -> None:
        """Nothing more of an orderly queue is called."""
        del self._calls[held]
        self.do(held.close_jobs(1, self.world.now))

    def seconds(self) -> float:
        return 0.001 + self.world.random.random() * self.mood.seconds_max

    def fails(self) -> bool:
        return self.world.random.random() < self.mood.failures

    def _work(self) -> None:
        for number, busy in enumerate(self.running):
            if busy is None and self._jobs:
                job = self.running[number] = self._jobs.popleft()
                job.started = self.world.now
                self.world.book.call_began(job.held)
                ended = partial(self._job_ended, number, job)
                self.world.after(self.seconds(), self._if_alive(ended))

    def _job_ended(self, number: int, job: Job) -> None:
        self.running[number] = None
        held, now = job.held, self.world.now
        self.world.book.call_ended(held)
        count = len(job.messages)
        if self.fails():
            count = self.world.random.randrange(count)
        for message in job.messages[:count]:
            self.world.book.was_consumed(held.queue, message.queue_offset)
        if count == len(job.messages):
            self.do(held.consumed(job, now))
        else:
            self.do(held.failed(job, Verdict(count), now))
        self._work()

    def _retry_later(
        self, held: HeldQueue, left: list[ReceivedMessage], kept: list[ReceivedMessage]
    ) -> None:
        if not left:
            self.do(held.keep(kept, self.world.now))
            return
        message = left.pop(0)

        def answered(is_taken: Any) -> None:
            if is_taken:
                held.sent_back(message)
            else:
                kept.append(message)
            self._retry_later(held, left, kept)

        broker = self.world.broker
        self.call(lambda reply: reply(broker.send_back(message, held.queue)), answered)

    def _resubmit(self, held: HeldQueue, messages: Any) -> None:
        if not held.is_dropped:
            self.do((Deliver(held, messages),))

    # Calls.

    def call(
        self,
        work: Callable[[Callable[[Any], None]], None],
        then: Callable[[Any], None],
        seconds: float = CALL_SECONDS,
    ) -> None:
        """Ask the broker; ``then`` is told the answer, or None when none came in time."""
        is_told = False

        def tell(answer: Any) -> None:
            nonlocal is_told
            if not is_told and self.is_alive:
                is_told = True
                then(answer)

        self.link.up(lambda: work(lambda answer: self.link.down(lambda: tell(answer))))
        self.world.after(seconds, lambda: tell(None))

    def _call(self, work: Callable[[], Any], then: Callable[[Any], Instructions]) -> None:
        """As ``call``, about the life of a queue. An unhealthy shell may keep the end to itself."""
        is_silent = not self.world.is_healthy and self.world.random.random() < SILENCE

        def told(answer: Any) -> None:
            if not is_silent:
                self.do(then(answer))

        self.call(lambda reply: reply(work()), told)

    def _every(self, seconds: float, act: Callable[[], None]) -> None:
        def again() -> None:
            act()
            self.world.after(seconds, self._if_alive(again))

        self.world.after(self.world.random.random() * seconds, self._if_alive(again))

    def _if_alive(self, act: Callable[[], None]) -> Callable[[], None]:
        return lambda: act() if self.is_alive else None
