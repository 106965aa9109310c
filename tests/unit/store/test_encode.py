"""A batch is encoded as its messages are one by one."""

from __future__ import annotations

import pytest

from cometmq.base.errors import RecordTooLarge
from cometmq.model.address import pack_host
from cometmq.store.encode import batch_record_bytes, encode, encode_batch, record_bytes
from cometmq.store.put import NewBatch, NewMessage

V4, V6 = pack_host("10.0.0.1", 9), pack_host("::1", 10)


def batch_of(bodies: list[bytes], host: bytes = V4) -> NewBatch:
    return NewBatch(
        topic="T",
        queue_id=3,
        flags=list(range(len(bodies))),
        bodies=bodies,
        properties=[b"A\x01%d" % (len(body) + number % 2) for number, body in enumerate(bodies)],
        tags_codes=[0] * len(bodies),
        keys=[],
        key_counts=[0] * len(bodies),
        sys_flag=1 | 48,
        born_timestamp=1000,
        born_host=host,
        reconsume_times=7,
    )


def messages_of(batch: NewBatch) -> list[NewMessage]:
    return [
        NewMessage(
            topic=batch.topic,
            queue_id=batch.queue_id,
            body=body,
            properties=properties,
            flag=flag,
            sys_flag=batch.sys_flag,
            born_timestamp=batch.born_timestamp,
            born_host=batch.born_host,
            reconsume_times=batch.reconsume_times,
        )
        for flag, body, properties in zip(batch.flags, batch.bodies, batch.properties, strict=True)
    ]


@pytest.mark.parametrize("store_host", [V4, V6])
@pytest.mark.parametrize("host", [V4, V6, b""])
@pytest.mark.parametrize("topic_field", [b"\x01T", b"\x01\x2c" + b"t" * 300])
@pytest.mark.parametrize(
    "bodies",
    [[b"x"], [b"", b"one", b"two", b"three", b"four"], [b"one", b"two", b"six"], [b"", b""]],
)
@pytest.mark.parametrize("are_texts_alike", [False, True])
def test_records_are_the_same(
    store_host: bytes, host: bytes, topic_field: bytes, bodies: list[bytes], are_texts_alike: bool
) -> None:
    batch = batch_of(bodies, host)
    if not are_texts_alike:
        batch.properties[-1] += b"0"
    sizes = batch_record_bytes(batch, topic_field, store_host, 1000)
    messages = messages_of(batch)
    assert sizes == [record_bytes(message, topic_field, store_host, 1000) for message in messages]
    expected = b""
    places: list[int] = []
    for number, (message, size) in enumerate(zip(messages, sizes, strict=True)):
        places.append(5000 + len(expected))
        expected += encode(message, size, topic_field, 70 + number, places[-1], 99, store_host)
    assert encode_batch(batch, sizes, topic_field, 70, places, 99, store_host) == expected


def test_limits_hold_for_each() -> None:
    batch = batch_of([b"x", b"x" * 100, b"x"])
    with pytest.raises(RecordTooLarge, match="body of 100 bytes, at most 99"):
        batch_record_bytes(batch, b"\x01T", V4, 99)
    batch.properties[1] = b"x" * 32768
    with pytest.raises(RecordTooLarge, match="properties of 32768 bytes"):
        batch_record_bytes(batch, b"\x01T", V4, 1000)
