"""The store against a plain list, on a disk that crashes at any call.

The promise of the whole project in one machine; ``cometmq.testing.store_simulation`` says what is compared. Files are
tiny, so that every few messages one fills up, and messages are cut to end right at, before or behind a file's end.

``COMETMQ_SIMULATION_EXAMPLES`` makes it run longer. A failure prints its steps, seeds included; it can be replayed
with the printed ``@reproduce_failure`` line. What it has found is kept in ``test_store_crashes``.
"""

from __future__ import annotations

import os

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cometmq.model.java_hash import java_hash
from cometmq.store.log.new_messages import NewMessage
from cometmq.testing.faulty_files import Moment, Outage
from cometmq.testing.store_model import ALWAYS, Queue
from cometmq.testing.store_scenario import (
    KEYS,
    QUEUES,
    TAGS,
    TOPICS,
    make_message,
    put_many,
    put_up_to_file_end,
    small_store,
)
from cometmq.testing.store_simulation import PlannedCrash

queues = st.sampled_from(QUEUES)
varieties = st.integers(0, 5000)
body_lengths = st.one_of(st.integers(0, 50), st.integers(0, 900))
shapes = st.lists(st.tuples(varieties, body_lengths), min_size=1, max_size=6)
messages = st.builds(make_message, queues, varieties, body_lengths)
moments = st.sampled_from(Moment)
outages = st.sampled_from(Outage)
crash_calls = st.one_of(st.integers(1, 12), st.integers(1, 120))


def has_lived(machine: StoreMachine) -> bool:
    """Whether there is something to lose: a machine that crashes all the time tests empty stores."""
    return machine.simulation.puts_since_crash >= 8


class StoreMachine(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1 << 16))
    def create(self, seed: int) -> None:
        self.simulation = small_store(seed)

    @rule(message=messages)
    def put(self, message: NewMessage) -> None:
        self.simulation.put([message])

    @rule(message=messages, delta=st.integers(-2, 2))
    def put_up_to_the_end_of_the_file(self, message: NewMessage, delta: int) -> None:
        put_up_to_file_end(self.simulation, message, delta)

    @rule(queue=queues, shapes=shapes)
    def put_batch(self, queue: Queue, shapes: list[tuple[int, int]]) -> None:
        self.simulation.put([make_message(queue, *shape) for shape in shapes])

    @precondition(lambda self: not self.simulation.is_space_short)
    @rule(group=st.lists(messages, min_size=2, max_size=6))
    def put_each(self, group: list[NewMessage]) -> None:
        self.simulation.put_each(group)

    @rule(queue=queues, first=varieties, count=st.integers(5, 25), body_bytes=st.integers(0, 400))
    def put_many(self, queue: Queue, first: int, count: int, body_bytes: int) -> None:
        put_many(self.simulation, queue, first, count, body_bytes)

    @rule()
    def flush(self) -> None:
        self.simulation.flush()

    @rule(hours=st.sampled_from([0, 1, 40, 80]))
    def maintain(self, hours: int) -> None:
        self.simulation.clock.advance(hours * 3600)
        self.simulation.maintain()

    @precondition(has_lived)
    @rule(topic=st.sampled_from(TOPICS))
    def delete_topic(self, topic: str) -> None:
        self.simulation.delete_topic(topic)

    @rule(milliseconds=st.integers(0, 5000), jump_seconds=st.sampled_from([0, 0, -100, 100]))
    def let_time_pass(self, milliseconds: int, jump_seconds: int) -> None:
        self.simulation.clock.advance(milliseconds / 1000)
        self.simulation.clock.jump(jump_seconds)

    @rule()
    def stop_and_start(self) -> None:
        self.simulation.stop_and_start()

    @precondition(has_lived)
    @rule(outage=outages)
    def crash(self, outage: Outage) -> None:
        self.simulation.crash(outage)

    @rule(
        calls=crash_calls,
        moment=moments,
        outage=outages,
        in_recovery=st.lists(st.tuples(crash_calls, moments, outages), max_size=2),
    )
    def prepare_crash(
        self, calls: int, moment: Moment, outage: Outage, in_recovery: list[PlannedCrash]
    ) -> None:
        self.simulation.prepare_crash(calls, moment, outage, in_recovery)

    @precondition(has_lived)
    @rule(queue=queues, shapes=shapes, calls=st.integers(1, 8), moment=moments, outage=outages)
    def crash_in_a_put(
        self,
        queue: Queue,
        shapes: list[tuple[int, int]],
        calls: int,
        moment: Moment,
        outage: Outage,
    ) -> None:
        self.simulation.prepare_crash(calls, moment, outage)
        self.put_batch(queue, shapes)

    @precondition(has_lived)
    @rule()
    def fail_a_sync_and_lose_power(self) -> None:
        self.simulation.fail_sync_and_lose_power()

    @rule(free_bytes=st.sampled_from([0, 4096, 3 * 4096]))
    def run_out_of_space(self, free_bytes: int) -> None:
        self.simulation.run_out_of_space(free_bytes)

    @precondition(lambda self: self.simulation.is_space_short)
    @rule()
    def find_space(self) -> None:
        self.simulation.make_space()
        self.simulation.maintain()

    @rule(queue=queues, at=st.integers(0, 100), key=st.sampled_from([*KEYS, "U7", "none"]))
    def look(self, queue: Queue, at: int, key: str) -> None:
        """Everything a client may ask for, at one place of the list."""
        model = self.simulation.model
        store = self.simulation.store
        tag = TAGS[at % len(TAGS)]
        offset = at % (len(model.rows(queue)) + 4) - 1
        model.check_get(store, queue, offset, java_hash(tag) if tag else None)
        times = sorted({row.stored.store_timestamp for row in model.kept}) or [1]
        moment = times[at % len(times)]
        for begin, end in (ALWAYS, (moment, times[-1]), (times[0], moment)):
            model.check_query(store, queue[0], key, begin, end)
        for difference in (-1, 0, 1):
            model.check_find_by_time(store, queue, moment + difference)

    @invariant()
    def queues_are_as_long_as_the_list(self) -> None:
        self.simulation.model.check_lengths(self.simulation.store)

    def teardown(self) -> None:
        if hasattr(self, "simulation"):
            self.simulation.finish()


StoreMachine.TestCase.settings = settings(
    max_examples=int(os.environ.get("COMETMQ_SIMULATION_EXAMPLES", "80")),
    stateful_step_count=50,
    deadline=None,
    print_blob=True,
    report_multiple_bugs=False,
    # Without the explanation of a failure, which traces every line and takes minutes here.
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
TestStore = StoreMachine.TestCase
