"""Pops against a plain model: a message comes until it is acknowledged, and never while it is invisible."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.broker.pop.rig import GROUP, QUEUES, Out, PopRig

from cometmq.model.group import SubscriptionGroupConfig
from cometmq.testing.faulty_files import Outage

END_SECONDS = 200.0
TRIES_MAX = 1_000_000

NUMBER = st.integers(0, 40)
STEP = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 6)),
    st.tuples(st.just("pop"), st.integers(1, 8)),
    st.tuples(st.just("pop"), st.integers(1, 8)),
    st.tuples(st.just("ack"), NUMBER),
    st.tuples(st.just("ack"), NUMBER),
    st.tuples(st.just("change"), NUMBER),
    st.tuples(st.just("pass"), NUMBER),
    st.tuples(st.just("save"), NUMBER),
    st.tuples(st.just("flush"), NUMBER),
    st.tuples(st.just("restart"), NUMBER),
    st.tuples(st.just("kill"), NUMBER),
)


@dataclass
class Given:
    """A message that is out, by what, and until when."""

    out: Out
    until_ms: int


class Model:
    def __init__(self, seed: int) -> None:
        self.rig = PopRig(seed)
        self.rig.groups.put(SubscriptionGroupConfig(group_name=GROUP, retry_max_times=TRIES_MAX))
        self.rig.groups.save_if_changed()
        self.ends: dict[bytes, int] = {}
        self.out: dict[bytes, Given] = {}
        self.acked: set[bytes] = set()
        self.is_exact = True
        """No power was lost: nothing may come that was acknowledged."""

    def step(self, name: str, number: int) -> None:
        getattr(self, "do_" + name)(number)

    def do_put(self, number: int) -> None:
        for _ in range(number):
            body = b"%d" % len(self.ends)
            self.ends[body] = self.rig.put(body, len(self.ends) % QUEUES).end_offset

    def do_pop(self, number: int) -> None:
        invisible_ms = 1000 * number
        for body, out in self.rig.pop(number, invisible_ms=invisible_ms):
            if self.is_exact:
                assert body not in self.acked, body
                before = self.out.get(body)
                assert before is None or before.until_ms <= self.now, (body, before)
            self.out[body] = Given(out, out[0].pop_time + invisible_ms)

    def do_ack(self, number: int) -> None:
        if body := self.pick(number):
            given = self.out[body]
            is_taken = self.rig.ack(given.out) > 0
            if self.is_exact:
                assert is_taken == (given.until_ms > self.now), (body, given)
            if is_taken:
                self.acked.add(body)
                del self.out[body]

    def do_change(self, number: int) -> None:
        if body := self.pick(number):
            key, offset = self.out[body].out
            point = self.rig.pops.change_invisible(key, offset, 3000)
            if self.is_exact:
                assert (point is not None) == (self.out[body].until_ms > self.now)
            if point is not None:
                self.out[body] = Given((point.key, offset), point.due_ms)

    def do_pass(self, number: int) -> None:
        self.rig.advance(number / 4)

    def do_save(self, number: int) -> None:
        self.rig.save()

    def do_flush(self, number: int) -> None:
        self.rig.store.flush()

    def do_restart(self, number: int) -> None:
        self.rig.begin_anew()
        self.rig.advance(0)

    def do_kill(self, number: int) -> None:
        self.rig.crash(Outage.PROCESS_KILL)
        self.rig.advance(0)

    def lose_power(self) -> None:
        flushed = self.rig.store.watermarks.flushed.value
        self.is_exact = False
        self.rig.crash(Outage.POWER_LOSS)
        self.ends = {body: end for body, end in self.ends.items() if end <= flushed}
        self.out.clear()

    def pick(self, number: int) -> bytes | None:
        return sorted(self.out)[number % len(self.out)] if self.out else None

    @property
    def now(self) -> int:
        return self.rig.clock.wall_ms()

    def finish(self) -> None:
        """In the end everything comes that was not acknowledged."""
        self.rig.advance(END_SECONDS)
        came: set[bytes] = set()
        while popped := self.rig.pop(32, invisible_ms=1_000_000):
            came.update(body for body, _ in popped)
        open_bodies = set(self.ends) - self.acked
        if self.is_exact:
            assert came == open_bodies
        else:
            assert open_bodies <= came


@settings(max_examples=150)
@given(st.lists(STEP, max_size=40), st.integers(0, 1000))
def test_no_message_is_lost_or_shown_too_early(steps: list[tuple[str, int]], seed: int) -> None:
    model = Model(seed)
    for name, number in steps:
        model.step(name, number)
    model.finish()


@settings(max_examples=150)
@given(
    st.lists(STEP, max_size=25),
    st.lists(STEP, max_size=15),
    st.integers(0, 1000),
)
def test_no_message_on_the_disk_is_lost_with_the_power(
    before: list[tuple[str, int]], after: list[tuple[str, int]], seed: int
) -> None:
    model = Model(seed)
    for name, number in before:
        model.step(name, number)
    model.lose_power()
    for name, number in after:
        model.step(name, number)
    model.finish()
