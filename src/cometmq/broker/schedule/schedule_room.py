"""The root of the room for delay levels: reads how far delivery had come, and builds ``Schedule`` on it."""

from __future__ import annotations

from cometmq.broker.core import BrokerCore
from cometmq.broker.schedule.schedule import Schedule
from cometmq.store.meta.delay_offsets import DelayOffsetTable


def open_schedule(core: BrokerCore) -> Schedule:
    """A schedule that takes messages, but delivers none before it is started.

    Raises:
        CorruptFile: the file of offsets cannot be read.
    """
    table = DelayOffsetTable(core.live.current.store.path("config"), core.files, core.clock)
    table.load()
    return Schedule(
        live=core.live,
        store=core.store,
        table=table,
        stats=core.stats,
        clock=core.clock,
        loop=core.loop,
        restore_topic=core.creation.restore,
    )
