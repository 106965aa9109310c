"""Crashes at every disk call of a store with the extended consume queue: each entry has its unit, and the right one.

The units are compared with the list, too; see ``cometmq.testing.store_scenario``. Their files take one or two of them.
"""

from __future__ import annotations

import itertools

import pytest

from cometmq.store.queues import consume_queues
from cometmq.testing.faulty_files import Moment, Outage
from cometmq.testing.store_scenario import (
    make_message,
    put_many,
    put_up_to_file_end,
    small_store,
)
from cometmq.testing.store_simulation import StoreSimulation

A0, A1, B0, B1 = ("A", 0), ("A", 1), ("Topic-B", 0), ("Topic-B", 1)
MOMENTS = list(Moment)
KILL, POWER = Outage.PROCESS_KILL, Outage.POWER_LOSS


def live(simulation: StoreSimulation) -> None:
    """A little of everything, over several files of each kind."""
    put_many(simulation, A0, 1, 9, 120)
    simulation.put([make_message(B0, number, 40) for number in range(5)])
    simulation.flush()
    put_up_to_file_end(simulation, make_message(A1, 3, 0), 0)
    put_many(simulation, B1, 30, 6, 200)
    simulation.maintain()
    simulation.flush()
    simulation.clock.advance(80 * 3600)
    simulation.maintain()
    simulation.delete_topic("Topic-B")
    put_many(simulation, B0, 60, 4)
    simulation.flush()
    simulation.stop_and_start()
    put_many(simulation, A0, 90, 3)


@pytest.mark.parametrize("outage", [KILL, POWER])
@pytest.mark.parametrize("has_short_rounds", [True, False])
def test_every_disk_call_of_a_life(
    outage: Outage, has_short_rounds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_short_rounds:
        # Entries are written after every other put, one queue at a time.
        monkeypatch.setattr(consume_queues, "WAITING_MIN", 2)
        monkeypatch.setattr(consume_queues, "WAITING_PER_QUEUE", 1)
        monkeypatch.setattr(consume_queues, "ROUND_PART", 1)
    whole = small_store(0, extended=True)
    before = whole.files.call_count
    live(whole)
    whole.finish()
    total = whole.files.call_count - before
    assert total > 100
    for calls in range(1, total + 1):
        simulation = small_store(calls, extended=True)
        simulation.prepare_crash(calls, MOMENTS[calls % 3], outage)
        live(simulation)
        simulation.finish()


@pytest.mark.parametrize(("first", "second"), list(itertools.product([KILL, POWER], repeat=2)))
def test_every_disk_call_of_a_recovery(first: Outage, second: Outage) -> None:
    for calls in range(1, 50):
        simulation = small_store(calls, extended=True)
        put_many(simulation, A0, 1, 9, 120)
        simulation.flush()
        put_many(simulation, A1, 20, 7, 200)
        simulation.put([make_message(B0, number, 40) for number in range(5)])
        simulation.store.maintain()
        in_recovery = [(calls, MOMENTS[calls % 3], second)]
        simulation.prepare_crash(10_000, Moment.BEFORE, first, in_recovery)
        simulation.crash(first)
        put_many(simulation, B0, 40, 3)
        simulation.stop_and_start()
        simulation.crash(POWER)
        put_many(simulation, B1, 50, 12, 300)
        simulation.flush()
        simulation.clock.advance(80 * 3600)
        simulation.maintain()
        simulation.crash(POWER)
        simulation.finish()


@pytest.mark.parametrize("free_bytes", [0, 300, 1500, 4000])
def test_a_full_disk_keeps_units_and_entries_waiting(free_bytes: int) -> None:
    simulation = small_store(0, extended=True)
    put_many(simulation, A0, 1, 9, 120)
    simulation.run_out_of_space(free_bytes)
    put_many(simulation, A0, 20, 9, 120)
    simulation.flush()
    simulation.make_space()
    simulation.maintain()
    put_many(simulation, B0, 40, 5)
    simulation.flush()
    simulation.stop_and_start()
    simulation.crash(POWER)
    simulation.finish()


@pytest.mark.parametrize("outage", [KILL, POWER])
def test_lost_units_are_made_again_whatever_happens_meanwhile(outage: Outage) -> None:
    for calls in range(1, 40):
        simulation = small_store(calls, extended=True)
        put_many(simulation, A0, 1, 9, 120)
        put_many(simulation, B0, 20, 9, 120)
        simulation.store.close()
        simulation.files.remove_tree("/store/consumequeue_ext/A")
        simulation.files.sync_partition("/store")
        simulation.prepare_crash(calls, MOMENTS[calls % 3], outage)
        simulation.start_again()
        simulation.finish()
