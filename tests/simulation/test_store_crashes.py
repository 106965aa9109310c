"""Crashes by plan instead of by chance: at every disk call of a life and of a recovery, and those that were found.

Each run compares everything with the list, see ``cometmq.testing.store_simulation``. What a power loss leaves depends
on a seed, so what was found is tried with several.
"""

from __future__ import annotations

import itertools

import pytest
from tests.simulation.store_lives import (
    A0,
    A1,
    B0,
    KILL,
    MOMENTS,
    POWER,
    calls_of_life,
    crash_in_recovery,
    live,
    shorten_rounds,
)

from cometmq.testing.faulty_files import Moment, Outage
from cometmq.testing.store_scenario import (
    make_message,
    put_many,
    put_up_to_file_end,
    small_store,
)
from cometmq.testing.store_simulation import StoreSimulation

SEEDS = range(12)


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_rounds(monkeypatch)


@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize("outage", [KILL, POWER])
def test_every_disk_call_of_a_life_with_short_rounds(outage: Outage) -> None:
    test_every_disk_call_of_a_life(outage)


@pytest.mark.parametrize("outage", [KILL, POWER])
def test_every_disk_call_of_a_life(outage: Outage) -> None:
    total = calls_of_life(small_store(0))
    assert total > 100
    for calls in range(1, total + 1):
        simulation = small_store(calls)
        simulation.prepare_crash(calls, MOMENTS[calls % 3], outage)
        live(simulation)
        simulation.finish()


@pytest.mark.parametrize(("first", "second"), list(itertools.product([KILL, POWER], repeat=2)))
def test_every_disk_call_of_a_recovery(first: Outage, second: Outage) -> None:
    for calls in range(1, 40):
        crash_in_recovery(small_store(calls), calls, first, second)


@pytest.mark.parametrize("calls_left", range(6))
def test_a_half_written_checkpoint_does_not_come_back_whole(calls_left: int) -> None:
    """A start that finds half of it looks further back, and cuts queues to that. If the power fails then, the disk
    still has the checkpoint before, which knows nothing of the cut."""

    def stopped_once() -> StoreSimulation:
        simulation = small_store(0)
        put_many(simulation, A0, 1, 9)
        put_many(simulation, B0, 20, 9, 400)
        simulation.stop_and_start()
        simulation.put([make_message(A1, 1, 0)])
        return simulation

    simulation = stopped_once()
    before = simulation.files.call_count
    simulation.store.close()
    calls = simulation.files.call_count - before
    for calls_of_recovery in range(1, 40):
        simulation = stopped_once()
        in_recovery = [(calls_of_recovery, Moment.MIDDLE, POWER)]
        simulation.prepare_crash(calls - calls_left, Moment.BEFORE, KILL, in_recovery)
        simulation.stop_and_start()
        simulation.finish()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_log_file_stays_until_its_queue_entries_are_on_disk(seed: int) -> None:
    """Else a queue that is not written again would start over from offset 0."""
    simulation = small_store(seed)
    simulation.put([make_message(A1, 0, 0)])
    put_up_to_file_end(simulation, make_message(A0, 0, 0), 0)
    put_many(simulation, A0, 0, 2)
    simulation.flush_with_a_failing_sync(after=2)
    assert simulation.store.watermarks.flushed.value == simulation.store.max_physical
    simulation.clock.advance(80 * 3600)
    simulation.maintain()
    simulation.crash(POWER)
    simulation.finish()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cut_queue_file_does_not_come_back(seed: int) -> None:
    simulation = small_store(seed)
    put_up_to_file_end(simulation, make_message(A0, 0, 0), 0)
    put_many(simulation, A1, 1, 8)
    simulation.fail_sync_and_lose_power()
    put_up_to_file_end(simulation, make_message(A0, 0, 0), 0)
    simulation.crash(KILL)
    put_many(simulation, A0, 0, 3, 700)
    simulation.flush()
    simulation.clock.advance(80 * 3600)
    simulation.maintain()
    simulation.stop_and_start()
    simulation.crash(POWER)
    simulation.finish()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_recovery_that_was_killed_does_not_hide_the_power_loss_before_it(seed: int) -> None:
    for calls in range(1, 12):
        simulation = small_store(seed)
        simulation.put([make_message(A0, 1, 0)])
        simulation.flush()
        put_many(simulation, A0, 0, 7)
        in_recovery = [(1, Moment.BEFORE, POWER), (calls, Moment.AFTER, KILL)]
        simulation.prepare_crash(1, Moment.BEFORE, KILL, in_recovery)
        simulation.flush()
        simulation.finish()


@pytest.mark.parametrize("seed", SEEDS)
def test_keys_of_a_record_split_over_two_files_survive_a_killed_recovery(seed: int) -> None:
    for calls in range(1, 14):
        simulation = small_store(seed)
        # Two keys each, and seven entries per file.
        simulation.put([make_message(A0, 1, 0) for _ in range(4)])
        put_up_to_file_end(simulation, make_message(A0, 0, 0), 0)
        simulation.put([make_message(A0, 0, 0)])
        simulation.flush()
        simulation.prepare_crash(1, Moment.BEFORE, POWER, [(calls, Moment.AFTER, POWER)])
        put_many(simulation, A1, 380, 2)
        simulation.finish()


@pytest.mark.parametrize("seed", SEEDS)
def test_keys_survive_a_torn_checkpoint_and_a_killed_recovery(seed: int) -> None:
    """The recovery had removed an index file, and the checkpoint no longer said what was in it."""
    for calls in range(1, 16):
        simulation = small_store(seed)
        simulation.put([make_message(A1, 1, 0)])
        put_up_to_file_end(simulation, make_message(A0, 0, 0), 0)
        simulation.flush()
        simulation.put([make_message(B0, 0, 0)])
        simulation.clock.advance(3600)
        simulation.put([make_message(A0, 0, 0)])
        in_recovery = [(1, Moment.MIDDLE, KILL)]
        simulation.prepare_crash(calls, Moment.MIDDLE, POWER, in_recovery)
        simulation.flush()
        simulation.finish()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_topic_is_not_mistaken_for_the_deleted_one_of_its_name(seed: int) -> None:
    """The deletion was noted for offsets that the log then lost."""
    simulation = small_store(seed)
    put_many(simulation, B0, 0, 12, 100)
    simulation.delete_topic("Topic-B")
    simulation.crash(POWER)
    put_many(simulation, B0, 0, 9)
    simulation.crash(KILL)
    simulation.crash(POWER)
    simulation.finish()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_deleted_topic_stays_deleted_when_its_log_file_comes_back(seed: int) -> None:
    simulation = small_store(seed)
    put_many(simulation, A0, 0, 8)
    simulation.flush()
    simulation.delete_topic("A")
    put_up_to_file_end(simulation, make_message(A0, 989, 0), 2)
    simulation.stop_and_start()
    simulation.clock.advance(80 * 3600)
    simulation.maintain()
    simulation.crash(POWER)
    simulation.finish()


def test_offsets_go_on_when_all_of_the_log_is_gone() -> None:
    """Retention took the old files, and a power loss what was in the last one."""
    for seed in range(100):
        simulation = small_store(seed)
        put_many(simulation, A0, 0, 8)
        put_up_to_file_end(simulation, make_message(A0, 0, 0), 0)
        for _ in range(2):
            simulation.flush()
            simulation.put([make_message(A0, 0, 0)])
            simulation.clock.advance(80 * 3600)
            simulation.maintain()
            simulation.crash(POWER)
        simulation.stop_and_start()
        simulation.put([make_message(A0, 0, 0)])
        simulation.crash(KILL)
        simulation.finish()


@pytest.mark.parametrize("seed", SEEDS)
def test_files_of_a_deleted_topic_that_come_back_in_part_do_not_count(seed: int) -> None:
    simulation = small_store(seed)
    put_many(simulation, B0, 0, 12)
    simulation.flush()
    simulation.delete_topic("Topic-B")
    put_many(simulation, A0, 0, 3)
    simulation.crash(POWER)
    simulation.finish()


@pytest.mark.parametrize("outage", [KILL, POWER])
def test_every_disk_call_of_a_restart(outage: Outage) -> None:
    """Also right between a clean stop and the next start."""
    for calls, seed in itertools.product(range(1, 45), range(5)):
        simulation = small_store(seed)
        put_many(simulation, B0, 0, 12)
        put_many(simulation, A0, 0, 5)
        simulation.maintain()
        simulation.delete_topic("Topic-B")
        put_many(simulation, A1, 0, 5)
        simulation.prepare_crash(calls, Moment.AFTER, outage)
        simulation.stop_and_start()
        simulation.finish()


def test_a_deletion_refused_by_a_full_disk_deletes_nothing_later() -> None:
    simulation = small_store(0)
    put_many(simulation, A0, 0, 8)
    simulation.flush()
    simulation.run_out_of_space(0)
    simulation.delete_topic("A")
    simulation.make_space()
    simulation.maintain()
    put_many(simulation, B0, 0, 3)
    simulation.delete_topic("Topic-B")
    simulation.stop_and_start()
    simulation.finish()
