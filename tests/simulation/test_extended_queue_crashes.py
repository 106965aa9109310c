"""Crashes at every disk call of a store with the extended consume queue: each entry has its unit, and the right one.

The units are compared with the list, too; see ``cometmq.testing.store_scenario``. Their files take one or two of them.
"""

from __future__ import annotations

import itertools

import pytest
from tests.simulation.store_lives import (
    A0,
    B0,
    KILL,
    MOMENTS,
    POWER,
    crash_in_recovery,
    live,
    shorten_rounds,
)

from cometmq.testing.faulty_files import Outage
from cometmq.testing.store_scenario import put_many, small_store


@pytest.mark.parametrize("outage", [KILL, POWER])
@pytest.mark.parametrize("has_short_rounds", [True, False])
def test_every_disk_call_of_a_life(
    outage: Outage, has_short_rounds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_short_rounds:
        shorten_rounds(monkeypatch)
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
        crash_in_recovery(small_store(calls, extended=True), calls, first, second)


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
