"""What happens to a store while it crashes by plan, in each kind of store the same."""

from __future__ import annotations

from typing import Final

import pytest

from cometmq.store.queues import consume_queues
from cometmq.testing.faulty_files import Moment, Outage
from cometmq.testing.store_scenario import make_message, put_many, put_up_to_file_end
from cometmq.testing.store_simulation import StoreSimulation

A0, A1, B0, B1 = ("A", 0), ("A", 1), ("Topic-B", 0), ("Topic-B", 1)
MOMENTS: Final = list(Moment)
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


def calls_of_life(simulation: StoreSimulation) -> int:
    """How many disk calls it takes."""
    before = simulation.files.call_count
    live(simulation)
    return simulation.files.call_count - before


def crash_in_recovery(
    simulation: StoreSimulation, calls: int, first: Outage, second: Outage
) -> None:
    """What a recovery has mended must stay mended: over its own crash, and over a power loss long after.

    Args:
        calls: of the disk, until the recovery crashes.
        first: what makes the recovery necessary.
        second: how the recovery ends.
    """
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


def shorten_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queue entries are written after every other put, one queue at a time."""
    monkeypatch.setattr(consume_queues, "WAITING_MIN", 2)
    monkeypatch.setattr(consume_queues, "WAITING_PER_QUEUE", 1)
    monkeypatch.setattr(consume_queues, "ROUND_PART", 1)
