"""A broker that only gives back what was popped, and the verbs of a consumer that pops."""

from __future__ import annotations

from collections.abc import Sequence

from tests.unit.broker.rig import Rig, run_now

from cometmq.broker.filters.message_filter import ALL_MESSAGES, MessageFilter
from cometmq.broker.master_duties import Duty
from cometmq.broker.pop.check_points import Ack, Key
from cometmq.broker.pop.pop_topics import retry_topic_v1
from cometmq.broker.pop.pops import PopRequest, PopResult
from cometmq.model.java_hash import java_hash
from cometmq.model.messages.record import Record, decode_records
from cometmq.store.log.new_messages import NewMessage, Stored

GROUP, TOPIC = "g", "T"
RETRY = retry_topic_v1(GROUP, TOPIC)
REVIVE = "rmq_sys_REVIVE_LOG_C49"
INVISIBLE = 10_000
QUEUES = 2

Out = tuple[Key, int]
"""A message that is out: its check-point and its offset."""


class PopRig(Rig):
    def __init__(self, seed: int = 0, **settings: str) -> None:
        super().__init__(settings, seed=seed)

    def open(self, **settings: str) -> None:
        super().open(**settings)
        self.pops = self.rooms.pop.pops

    def master_duties(self) -> Sequence[Duty]:
        return (self.rooms.pop,)

    def put(self, body: bytes = b"x", queue_id: int = 0, tag: str = "") -> Stored:
        return self.store.put(
            NewMessage(
                topic=TOPIC,
                queue_id=queue_id,
                body=body,
                properties=f"TAGS\x01{tag}\x02".encode() if tag else b"",
                tags_code=java_hash(tag) if tag else 0,
            )
        )

    def request(
        self,
        count: int = 32,
        *,
        invisible_ms: int = INVISIBLE,
        is_from_end: bool = False,
        wanted: MessageFilter = ALL_MESSAGES,
        retry: str = RETRY,
    ) -> PopRequest:
        return PopRequest(
            group=GROUP,
            topic=TOPIC,
            places=[*((TOPIC, queue_id) for queue_id in range(QUEUES)), (retry, 0)],
            count_max=count,
            invisible_ms=invisible_ms,
            is_from_end=is_from_end,
            wanted=wanted,
        )

    def pop(self, count: int = 32, *, invisible_ms: int = INVISIBLE) -> list[tuple[bytes, Out]]:
        """Bodies, and what to acknowledge them by."""
        return self.outs(self.pops.pop(self.request(count, invisible_ms=invisible_ms)))

    def outs(self, result: PopResult) -> list[tuple[bytes, Out]]:
        names = [
            (Key(GROUP, one.topic, one.queue_id, one.offsets[0], result.pop_time), offset)
            for one in result.popped
            for offset in one.offsets
        ]
        records = self.given(result)
        return [(record.body, out) for record, out in zip(records, names, strict=True)]

    def given(self, result: PopResult) -> list[Record]:
        return [record for part in result.parts for record in decode_records(part)]

    def bodies(self, count: int = 32) -> list[bytes]:
        return [body for body, _ in self.pop(count)]

    def ack(self, out: Out) -> int:
        key, offset = out
        return self.pops.ack(Ack(key, (offset,)))

    def save(self) -> None:
        """What the broker does every few seconds."""
        self.offsets.save_if_changed()

    def begin_anew(self) -> None:
        """``restart`` for tests that are no coroutines."""
        run_now(self.restart())
