"""A broker that only delivers messages of delay levels, of 1 s, 5 s and a minute."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.unit.broker.rig import Rig

from cometmq.broker.master_duties import Duty
from cometmq.model.address import pack_host
from cometmq.model.messages.record import Record
from cometmq.model.names import SCHEDULE_TOPIC
from cometmq.store.log.new_messages import NewMessage, Stored
from cometmq.store.meta.delay_offsets import DelayOffsetTable


class ScheduleRig(Rig):
    def master_duties(self) -> Sequence[Duty]:
        return (self.rooms.schedule,)

    @property
    def table(self) -> DelayOffsetTable:
        return self.schedule._table

    def put(self, body: bytes = b"x", level: int = 1, topic: str = "T") -> Stored:
        message = NewMessage(
            topic=topic,
            queue_id=2,
            body=body,
            properties=b"UNIQ_KEY\x01K" + body + b"\x02TAGS\x01A\x02KEYS\x01k1 k2",
            keys=["K", "k1", "k2"],
            flag=7,
            sys_flag=1,
            born_timestamp=1_699_999_999_000,
            born_host=pack_host("10.1.2.3", 4567),
            reconsume_times=3,
        )
        return self.schedule.put(message, level)

    async def save(self) -> None:
        """What it does by itself every few seconds."""
        await self.flush_during(self.schedule.save())

    def records(self, topic: str = "T", queue_id: int = 2) -> list[Record]:
        return super().records(topic, queue_id)

    def delivered(self) -> list[bytes]:
        return [record.body for record in self.records()]

    def waiting(self, level: int) -> list[Record]:
        return self.records(SCHEDULE_TOPIC, level - 1)


@pytest.fixture
def make_rig() -> Callable[..., ScheduleRig]:
    def make(**settings: str) -> ScheduleRig:
        return ScheduleRig({"messageDelayLevel": "1s 5s 1m", **settings})

    return make
