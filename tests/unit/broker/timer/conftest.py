"""A broker that only delivers messages with a time of delivery."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.unit.broker.rig import Rig

from cometmq.broker.master_duties import Duty
from cometmq.model.address import pack_host
from cometmq.model.messages.properties import TIMER_DELAY_MS
from cometmq.model.messages.recall_handle import RecallHandle
from cometmq.model.messages.record import Record
from cometmq.model.names import TIMER_TOPIC
from cometmq.store.log.new_messages import NewMessage, Stored


class TimerRig(Rig):
    def master_duties(self) -> Sequence[Duty]:
        return (self.rooms.timer.timed,)

    @property
    def now(self) -> int:
        return self.clock.wall_ms()

    def put(self, body: bytes = b"x", seconds: float = 1, properties: str = "") -> Stored:
        return self.timed.put(self.message(body, properties), self.now + round(seconds * 1000))

    def put_delay(self, body: bytes = b"x", seconds: float = 1) -> Stored:
        """As a sender does who says for how long, not until when."""
        delay_ms = str(round(seconds * 1000))
        deliver_ms = self.timed.deliver_ms((TIMER_DELAY_MS, delay_ms))
        message = self.message(body, f"{TIMER_DELAY_MS}\x01{delay_ms}\x02")
        return self.timed.put(message, deliver_ms)

    def message(self, body: bytes = b"x", properties: str = "") -> NewMessage:
        text = f"UNIQ_KEY\x01K{body.decode()}\x02TAGS\x01A\x02KEYS\x01k1 k2\x02{properties}"
        return NewMessage(
            topic="T",
            queue_id=2,
            body=body,
            properties=text.encode(),
            keys=["K" + body.decode(), "k1", "k2"],
            flag=7,
            sys_flag=1,
            born_timestamp=1_699_999_999_000,
            born_host=pack_host("10.1.2.3", 4567),
            reconsume_times=3,
        )

    def recall(self, body: bytes, deliver_ms: int) -> Stored:
        handle = RecallHandle("T", "b49", deliver_ms, "K" + body.decode())
        return self.timed.recall(handle, "PG", pack_host("10.1.2.3", 4567))

    def records(self, topic: str = "T", queue_id: int = 2) -> list[Record]:
        return super().records(topic, queue_id)

    def delivered(self) -> list[bytes]:
        return [record.body for record in self.records()]

    def waiting(self) -> list[Record]:
        return self.records(TIMER_TOPIC, 0)

    async def save(self) -> None:
        """What it does by itself every few seconds."""
        await self.flush_during(self.timed.save())


@pytest.fixture
def make_rig() -> Callable[..., TimerRig]:
    def make(**settings: str) -> TimerRig:
        return TimerRig(settings)

    return make
