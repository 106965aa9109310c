"""The members of a consumer group against everything that can happen to them.

What decides is the real thing (``client/core/consume/member``); network, broker, listeners and time are models
(``group_world``, ``group_member``). A group promises:

- nothing is lost: when the trouble is over, everything was consumed;
- in order: with ``orderly=True`` a message is consumed after all before it, and by one listener at a time;
- on a healthy network nothing is consumed twice, whoever joins and leaves, and no position goes back;
- a position never passes over a message that was not consumed;
- every wait has an end.

``COMETMQ_SIMULATION_EXAMPLES`` makes it run longer. A failure prints its steps, the seed included; it can be replayed
with the printed ``@reproduce_failure`` line.
"""

from __future__ import annotations

import os

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.simulation.group_member import QUICK, Mood, SimulatedMember
from tests.simulation.group_world import ALL_QUEUES, QUEUES, World

from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.model.message_queue import MessageQueue

MEMBERS_MAX = 4
HELD_SECONDS = 12.0
"""In a healthy group that nobody joins or leaves any more every queue has its owner by then."""
SETTLED_SECONDS = 500.0
"""Crashed members are forgotten after 120 s, locks after 60 s, and a stuck pull is noticed after 120 s."""

queues = st.sampled_from(QUEUES)
times = st.sampled_from([0.01, 0.05, 0.1, 0.3, 1.0, 3.0, 8.0, 25.0])
gaps = st.sampled_from([0.0, 0.02, 0.05, 0.1, 0.3])
fractions = st.floats(0.0, 1.0)
numbers = st.integers(0, MEMBERS_MAX - 1)


class HealthyGroup(RuleBasedStateMachine):
    """Members come and go in good order; listeners are slow and fail at times."""

    is_healthy = True

    @initialize(seed=st.integers(0, 1 << 16), is_orderly=st.booleans(), count=st.integers(1, 3))
    def begin(self, seed: int, is_orderly: bool, count: int) -> None:
        self.world = World(seed, is_orderly=is_orderly, is_healthy=self.is_healthy)
        self.member_rules = MemberRules(
            is_orderly=is_orderly,
            answer_seconds=5.0,
            suspend_seconds=0.5,
            reconsume_times_max=[None, 2][seed % 2],
        )
        self.mood = QUICK
        self.members: list[SimulatedMember] = []
        self.joined = 0
        for _ in range(count):
            self.join()

    @rule(queue=queues, count=st.integers(1, 12))
    def produce(self, queue: MessageQueue, count: int) -> None:
        for _ in range(count):
            self.world.broker.produce(queue)

    @rule(seconds=times)
    def let_time_pass(self, seconds: float) -> None:
        self.world.run(seconds)
        self.members = [member for member in self.members if member.is_alive]

    @precondition(lambda self: len(self.members) < MEMBERS_MAX)
    @rule()
    def join(self) -> None:
        self.joined += 1
        # A name decides which share its owner has: not always the last one.
        name = f"{self.world.random.randrange(100):02d}-{self.joined}"
        member = SimulatedMember(self.world, name, self.member_rules)
        member.mood = self.mood
        member.join()
        self.members.append(member)

    @precondition(lambda self: self.members)
    @rule(number=numbers)
    def leave(self, number: int) -> None:
        self.members[number % len(self.members)].leave()

    @rule(joins=st.integers(0, 2), leaves=st.integers(0, 2), gap=gaps, count=st.integers(0, 8))
    def change_members_under_load(self, joins: int, leaves: int, gap: float, count: int) -> None:
        for queue in QUEUES:
            self.produce(queue, count)
        self.let_time_pass(gap)
        for number in range(max(joins, leaves)):
            if number < joins and len(self.members) < MEMBERS_MAX:
                self.join()
            if number < leaves and self.members:
                self.leave(self.world.random.randrange(MEMBERS_MAX))
            self.let_time_pass(gap * self.world.random.random())

    @rule(seconds_max=st.sampled_from([0.01, 0.3, 5.0]), failures=st.sampled_from([0.0, 0.3]))
    def change_mood(self, seconds_max: float, failures: float) -> None:
        self._set_mood(Mood(seconds_max, failures))

    @rule(queue=st.sampled_from(ALL_QUEUES), at=fractions, gap=gaps)
    def reset(self, queue: MessageQueue, at: float, gap: float) -> None:
        broker = self.world.broker
        if queue in QUEUES:
            self.produce(queue, 2)
        self.let_time_pass(gap)
        broker.reset(queue, round(at * broker.end(queue)))

    @rule(queue=st.sampled_from(ALL_QUEUES))
    def delete_old_messages(self, queue: MessageQueue) -> None:
        self.world.broker.delete_consumed(queue)

    @invariant()
    def waits_end(self) -> None:
        for member in self.members:
            if member.is_alive:
                member.check_waits()

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        self.end_trouble()
        self._set_mood(QUICK)
        if all(member.is_closing for member in self.members if member.is_alive):
            self.join()
        if self.is_healthy:
            world.run(HELD_SECONDS, self.is_shared)
            assert self.is_shared(), self._state()
        world.run(SETTLED_SECONDS, self.is_settled)
        self.waits_end()
        assert not world.book.lost()
        assert self.is_settled(), self._state()

    def end_trouble(self) -> None:
        """All is well from now on."""

    def is_shared(self) -> bool:
        """Every queue has one owner, who is there to stay."""
        members = [member for member in self.members if member.is_alive]
        held = [queue for member in members for queue in member.member.held]
        is_leaving = any(member.is_closing or member.member.leaving for member in members)
        return sorted(held) == sorted(ALL_QUEUES) and not is_leaving

    def is_settled(self) -> bool:
        """And everything is consumed and committed."""
        broker = self.world.broker
        return (
            self.is_shared()
            and all(broker.position(queue) == broker.end(queue) for queue in ALL_QUEUES)
            and not self.world.book.lost()
        )

    def _set_mood(self, mood: Mood) -> None:
        self.mood = mood
        for member in self.members:
            member.mood = mood

    def _state(self) -> str:
        broker = self.world.broker
        positions = {
            queue.queue_id: (broker.position(queue), broker.end(queue)) for queue in QUEUES
        }
        return f"{positions} {[(each.client_id, list(each.member.lives)) for each in self.members]}"


class TroubledGroup(HealthyGroup):
    """Messages between members and the broker are late or lost, members crash, listeners hang."""

    is_healthy = False

    @precondition(lambda self: self.members)
    @rule(number=numbers)
    def crash(self, number: int) -> None:
        self.members.pop(number % len(self.members)).crash()

    @precondition(lambda self: self.members)
    @rule(number=numbers)
    def cut_or_heal(self, number: int) -> None:
        member = self.members[number % len(self.members)]
        member.link.is_cut = not member.link.is_cut
        if member.link.is_cut and self.world.random.random() < 0.5:
            # The broker notices that the connection is gone.
            self.world.after(2.0, lambda: self.world.broker.unregister(member.client_id))

    @precondition(lambda self: self.members)
    @rule(number=numbers)
    def cut_for_long(self, number: int) -> None:
        """Long enough for somebody else to take its queues."""
        member = self.members[number % len(self.members)]
        member.link.is_cut = False
        self.cut_or_heal(number)
        self.let_time_pass(70.0)
        for queue in QUEUES:
            self.produce(queue, 3)
        self.let_time_pass(70.0)
        member.link.is_cut = False

    @precondition(lambda self: 0 < len(self.members) < MEMBERS_MAX)
    @rule()
    def join_a_deaf_group(self) -> None:
        """The others go on as if nothing had changed."""
        for member in self.members:
            member.deaf_until = self.world.now + 40.0
        self.join()
        self.let_time_pass(20.0)

    @rule(loss=st.sampled_from([0.0, 0.05, 0.3]), lateness=st.sampled_from([0.03, 0.5, 2.5]))
    def change_weather(self, loss: float, lateness: float) -> None:
        self.world.loss, self.world.lateness = loss, lateness

    @rule(seconds_max=st.sampled_from([0.5, 19.0]), failures=st.sampled_from([0.1, 1.0]))
    def hang_or_fail_all_the_time(self, seconds_max: float, failures: float) -> None:
        self._set_mood(Mood(seconds_max, failures))

    @precondition(lambda self: not self.member_rules.is_orderly)
    @rule()
    def hang_longer_than_a_message_may_be_kept(self) -> None:
        self._set_mood(Mood(150.0, 0.1))

    @rule(seconds=st.sampled_from([40.0, 90.0]))
    def let_much_time_pass(self, seconds: float) -> None:
        self.let_time_pass(seconds)

    def end_trouble(self) -> None:
        self.world.loss, self.world.lateness = 0.0, 0.03
        for member in self.members:
            member.link.is_cut = False
            member.deaf_until = 0.0


_examples = int(os.environ.get("COMETMQ_SIMULATION_EXAMPLES", "200"))
for _machine in (HealthyGroup, TroubledGroup):
    _machine.TestCase.settings = settings(
        max_examples=_examples,
        stateful_step_count=50,
        deadline=None,
        print_blob=True,
        report_multiple_bugs=False,
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
TestHealthyGroup = HealthyGroup.TestCase
TestTroubledGroup = TroubledGroup.TestCase
