"""Several controllers decide on one group at the same time, each with its own idea of who is alive.

They share a store and nothing else. A controller may stop between any two steps, also between a swap and its reply.
Beside it runs a model of the data: the master writes to all of the sync state set, and what they all have is
acknowledged. A controller that is cut off from the store tells a master of the past that it still is one; who follows
another by then takes nothing from it. Whatever the controllers do, an epoch has one master, epochs and ids only grow,
no decision is lost, and a new master has everything acknowledged unless it was made master in spite of that.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cometmq.controller import decisions
from cometmq.controller.decision_store import Held, settle
from cometmq.controller.decisions import SetChange
from cometmq.controller.election import Election, ElectionRequest, Verdict, elect
from cometmq.controller.group import Decision, Group, Living, Report
from cometmq.protocol.refusal import Refused

CONTROLLERS = 2
ID_MAX = 4

controllers = st.integers(0, CONTROLLERS - 1)
ids = st.integers(1, ID_MAX)
ages = st.sampled_from((0, 0, 0, 1, 2))
"""How many changes ago somebody looked."""


class Pause:
    """Where another controller may come in between."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class SharedStore:
    """Keeps every version that there ever was."""

    def __init__(self, stored: Callable[[Group | None, Group], None]) -> None:
        self.history: list[Group] = []
        self._stored = stored

    @property
    def now(self) -> Group | None:
        return self.history[-1] if self.history else None

    def known(self) -> Mapping[str, Held]:
        return {"bk": Held(self.history[-1], len(self.history))} if self.history else {}

    async def read(self, broker_name: str) -> Held | None:
        await Pause()
        held = self.known().get(broker_name)
        await Pause()
        return held

    async def swap(self, broker_name: str, seen: int, group: Group) -> bool:
        await Pause()
        if seen != len(self.history):
            return False
        before = self.now
        self.history.append(group)
        self._stored(before, group)
        await Pause()
        return True


@dataclass
class Operation:
    """A request under way at a controller, and the decisions that were made for it, stored or not."""

    steps: Coroutine[Any, Any, Decision[Any]] | None = None
    made: list[Decision[Any]] = field(default_factory=list)
    joins: frozenset[int] = frozenset()
    """Replicas that the master takes into its set; it writes to them meanwhile."""
    epoch: int = -1


class ControllersMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = SharedStore(self.stored)
        self.operations: dict[int, Operation] = {}
        self.alive = [set(range(1, ID_MAX + 1)) for _ in range(CONTROLLERS)]
        self.doubtful: list[set[int]] = [set() for _ in range(CONTROLLERS)]
        self.unclean_allowed = False
        self.logs: dict[int, list[int]] = {}
        self.acked: set[int] = set()
        self.written = 0
        self.master_of: dict[int, int] = {}
        self.owner_of: dict[int, str] = {}
        self.stored_groups: list[Group] = []
        self.answered: list[Decision[Any]] = []
        self.follows: dict[int, int] = {}
        """The last reign of which a broker has taken records, or which is its own."""
        self.given_up = 0
        """Who was master before this epoch may acknowledge what is lost: an operator has said so."""

    @initialize(members=st.integers(0, 3), in_sync=st.integers(1, 3))
    def a_group(self, members: int, in_sync: int) -> None:
        for broker in range(1, members + 1):
            self.apply_id(0, 0, broker, True)
        if members:
            self.elect(0, 1, False, True)
        for nth in range(1, min(members, in_sync)):
            self.alter_set(0, nth, 0, True)

    # -- what each controller believes

    @rule(at=controllers, broker=ids, belief=st.sampled_from(("alive", "dead", "doubtful")))
    def believe(self, at: int, broker: int, belief: str) -> None:
        self.alive[at].discard(broker)
        self.doubtful[at].discard(broker)
        if belief != "dead":
            (self.alive if belief == "alive" else self.doubtful)[at].add(broker)

    @rule(at=controllers, is_restarted=st.booleans())
    def lose_master(self, at: int, is_restarted: bool) -> None:
        group = self.store.now
        if group is not None and group.master_id is not None:
            self.believe(at, group.master_id, "dead")
            self.elect(at, None, False, True)
            if is_restarted:
                self.believe(at, group.master_id, "alive")

    @rule(allowed=st.booleans())
    def configure(self, allowed: bool) -> None:
        self.unclean_allowed = allowed

    def living(self, at: int, group: Group | None) -> Living:
        members = set() if group is None else set(group.members)
        return Living(
            reports={
                i: Report(epoch=1, max_offset=len(self.logs.get(i, ())))
                for i in self.alive[at] & members
            },
            doubtful=frozenset(self.doubtful[at] & members),
        )

    # -- requests

    @rule(at=controllers, stale=st.integers(0, 1), code=st.integers(0, 9), at_once=st.booleans())
    def apply_id(self, at: int, stale: int, code: int, at_once: bool) -> None:
        now = self.store.now
        applied = max(1, (1 if now is None else now.next_id) - stale)
        if applied > ID_MAX:
            return
        self.begin(
            at,
            at_once,
            lambda group: decisions.apply_id(
                group,
                cluster="C",
                broker_name="bk",
                applied_id=applied,
                check_code=f"h:1;{code}",
                group_count=0,
            ),
        )

    @rule(at=controllers, broker=ids, at_once=st.booleans())
    def register(self, at: int, broker: int, at_once: bool) -> None:
        self.begin(
            at,
            at_once,
            lambda group: decisions.register(
                group, cluster="C", broker_name="bk", broker_id=broker, address="h:1"
            ),
        )

    @rule(at=controllers, broker=st.none() | ids, named=st.booleans(), at_once=st.booleans())
    def elect(self, at: int, broker: int | None, named: bool, at_once: bool) -> None:
        request = ElectionRequest(broker_id=broker, is_designated=named and broker is not None)

        def decide(group: Group | None) -> Decision[Election]:
            living, allowed = self.living(at, group), self.unclean_allowed
            decision = elect(group, request, living, unclean_allowed=allowed)
            if decision.answer.is_unclean:
                assert group is not None
                assert allowed or request.is_designated
                assert not any(map(living.may_include, group.sync_state_set))
            return decision

        self.begin(at, at_once, decide)

    @precondition(lambda self: self.store.now is not None)
    @rule(at=controllers, nth=st.integers(0, ID_MAX), stale=ages, at_once=st.booleans())
    def alter_set(self, at: int, nth: int, stale: int, at_once: bool) -> None:
        """The master takes a replica into its set that has caught up, or drops it; perhaps one that is none now."""
        seen = self.store.history[-1 - min(stale, len(self.store.history) - 1)]
        if seen.master_id is None:
            return
        broker = sorted(seen.members)[nth % len(seen.members)]
        if broker in seen.sync_state_set:
            new, joins = seen.sync_state_set - {broker}, frozenset[int]()
        else:
            if seen.master_epoch == self.store.history[-1].master_epoch:
                # It has caught up. Nobody follows a master that was replaced, though it may ask all the same.
                self.logs[broker] = list(self.logs[seen.master_id])
                self.follows[broker] = seen.master_epoch
            new = seen.sync_state_set | {broker}
            joins = frozenset({broker})
        change = SetChange(
            master_id=seen.master_id,
            master_epoch=seen.master_epoch,
            sync_state_set=new,
            sync_state_set_epoch=seen.sync_state_set_epoch,
        )
        self.begin(
            at,
            at_once,
            lambda group: decisions.alter_sync_state_set(group, change, self.living(at, group)),
            joins=joins,
            epoch=seen.master_epoch,
        )

    @rule(
        at=controllers,
        gone=st.sets(ids, max_size=2) | st.none(),
        even_alive=st.booleans(),
        at_once=st.booleans(),
    )
    def clean(self, at: int, gone: set[int] | None, even_alive: bool, at_once: bool) -> None:
        self.begin(
            at,
            at_once,
            lambda group: decisions.clean(
                group,
                broker_name="bk",
                cluster="C",
                ids=gone,
                living=self.living(at, group),
                even_alive=even_alive,
            ),
        )

    # -- time

    @rule(at=controllers, steps=st.integers(1, 4))
    def advance(self, at: int, steps: int) -> None:
        for _ in range(steps):
            self.step(at)

    @rule(at=controllers, nth=st.integers(0, ID_MAX), other=st.integers(0, ID_MAX))
    def alter_set_and_write(self, at: int, nth: int, other: int) -> None:
        """Another request of the same master is on its way meanwhile."""
        if self.store.now is not None:
            self.alter_set(1 - at, other, 0, False)
            self.alter_set(at, nth, 0, True)
            if self.store.now.master_id is not None:
                self.write(True)

    @rule(at=controllers)
    def crash(self, at: int) -> None:
        operation = self.operations.pop(at, None)
        if operation is not None and operation.steps is not None:
            operation.steps.close()

    def teardown(self) -> None:
        for at in list(self.operations):
            self.finish(at)
        for decision in self.answered:
            # Nothing that was answered is missing, and nothing is there twice.
            assert sum(one is decision.group for one in self.store.history) == 1

    # -- data

    @precondition(lambda self: self.store.now is not None and self.store.now.master_id is not None)
    @rule(reaches_all=st.sampled_from((True, True, False)))
    def write(self, reaches_all: bool) -> None:
        """The master appends; acknowledged if its whole set, and who is about to join it, has the record."""
        group = self.store.now
        assert group is not None
        assert group.master_id is not None
        self.written += 1
        joining = frozenset[int]()
        for operation in self.operations.values():
            if operation.epoch == group.master_epoch:
                joining |= operation.joins
        targets = (group.sync_state_set | joining) if reaches_all else {group.master_id}
        log = [*self.logs[group.master_id], self.written]
        for broker in targets:
            self.logs[broker] = list(log)
            self.follows[broker] = group.master_epoch
        if reaches_all:
            self.acked.add(self.written)

    @precondition(lambda self: self.store.now is not None)
    @rule(nth=st.integers(0, 4))
    def write_of_the_past(self, nth: int) -> None:
        """A master that was replaced and does not know. It waits for its own last set, as it does while it reigns."""
        now = self.store.now
        assert now is not None
        past = [one for one in self.master_of if self.given_up < one < now.master_epoch]
        if not past:
            return
        epoch = past[-1 - nth % len(past)]
        master = self.master_of[epoch]
        last = [one for one in self.store.history if one.master_epoch == epoch][-1]
        awaited = set(last.sync_state_set)
        for operation in self.operations.values():
            if operation.epoch == epoch:
                awaited |= operation.joins
        if self.follows.get(master, 0) > epoch or master not in now.members:
            return
        self.written += 1
        log = [*self.logs[master], self.written]
        self.logs[master] = list(log)
        if all(self.follows.get(broker, 0) <= epoch for broker in awaited):
            for broker in awaited:
                self.logs[broker] = list(log)
            self.acked.add(self.written)

    # -- what must hold

    def stored(self, before: Group | None, after: Group) -> None:
        assert after.fault() is None
        if before is None:
            before = Group(cluster="C", broker_name="bk")
        assert after.master_epoch >= before.master_epoch
        assert after.sync_state_set_epoch >= before.sync_state_set_epoch
        assert after.next_id >= before.next_id
        if after.master_id != before.master_id:
            assert after.master_epoch > before.master_epoch
        if after.sync_state_set != before.sync_state_set:
            assert after.sync_state_set_epoch > before.sync_state_set_epoch
        if after.master_id is not None:
            assert self.master_of.setdefault(after.master_epoch, after.master_id) == after.master_id
        for broker, member in after.members.items():
            assert self.owner_of.setdefault(broker, member.check_code) == member.check_code
            self.logs.setdefault(broker, [])
        (decision,) = (
            made
            for operation in self.operations.values()
            for made in operation.made
            if made.group is after
        )
        if not after.members:
            self.acked.clear()  # An operator gave the group up.
            self.given_up = after.master_epoch
        if isinstance(decision.answer, Election) and decision.answer.verdict is Verdict.ELECTED:
            assert after.master_id is not None
            self.follows[after.master_id] = after.master_epoch
            if decision.answer.is_unclean:
                self.acked &= set(self.logs[after.master_id])
                self.given_up = after.master_epoch - 1
            else:
                assert before.is_new or after.master_id in before.sync_state_set
                assert self.acked <= set(self.logs[after.master_id])
            assert after.sync_state_set == {after.master_id}

    @invariant()
    def the_set_has_what_was_acknowledged(self) -> None:
        group = self.store.now
        if group is not None:
            for broker in group.sync_state_set:
                assert self.acked <= set(self.logs[broker])

    # -- machinery

    def begin(
        self,
        at: int,
        at_once: bool,
        decide: Callable[[Group | None], Decision[Any]],
        *,
        joins: frozenset[int] = frozenset(),
        epoch: int = -1,
    ) -> None:
        self.finish(at)
        operation = Operation(joins=joins, epoch=epoch)

        def remember(group: Group | None) -> Decision[Any]:
            decision = decide(group)
            if decision.group is not group:
                operation.made.append(decision)
            return decision

        operation.steps = settle(self.store, "bk", remember)
        self.operations[at] = operation
        if at_once:
            self.finish(at)

    def finish(self, at: int) -> None:
        while at in self.operations:
            self.step(at)

    def step(self, at: int) -> None:
        operation = self.operations.get(at)
        if operation is None:
            return
        assert operation.steps is not None
        try:
            operation.steps.send(None)
        except StopIteration as ended:
            del self.operations[at]
            decision: Decision[Any] = ended.value
            if decision in operation.made:
                self.answered.append(decision)
        except Refused:
            del self.operations[at]


TestControllers = ControllersMachine.TestCase
TestControllers.settings = settings(max_examples=500, stateful_step_count=50, deadline=None)
