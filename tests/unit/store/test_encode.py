"""A batch is encoded as its messages are one by one."""

from __future__ import annotations

import pytest

from cometmq.base.errors import RecordTooLarge
from cometmq.model.address import pack_host
from cometmq.store.encode import batch_record_bytes, encode, encode_batch, record_bytes
from cometmq.store.put import NewMessage

V4, V6 = pack_host("10.0.0.1", 9), pack_host("::1", 10)


def messages(*hosts: bytes) -> list[NewMessage]:
    return [
        NewMessage(
            topic="T",
            queue_id=3,
            body=b"x" * number * 50,
            properties=b"A\x01%d" % number,
            flag=number,
            sys_flag=1 | 48,
            born_timestamp=1000 + number,
            born_host=host,
            reconsume_times=number,
            prepared_transaction_offset=-number,
        )
        for number, host in enumerate(hosts)
    ]


@pytest.mark.parametrize("store_host", [V4, V6])
@pytest.mark.parametrize("hosts", [(V4,), (V4, b"", V4), (V6, V4, b""), (V6,)])
@pytest.mark.parametrize("topic_field", [b"\x01T", b"\x01\x2c" + b"t" * 300])
def test_records_are_the_same(
    store_host: bytes, hosts: tuple[bytes, ...], topic_field: bytes
) -> None:
    batch = messages(*hosts)
    sizes = batch_record_bytes(batch, topic_field, store_host, 1000)
    assert sizes == [record_bytes(message, topic_field, store_host, 1000) for message in batch]
    expected = b""
    for number, (message, size) in enumerate(zip(batch, sizes, strict=True)):
        expected += encode(
            message, size, topic_field, 70 + number, 5000 + len(expected), 99, store_host
        )
    assert encode_batch(batch, sizes, topic_field, 70, 5000, 99, store_host) == expected


def test_limits_hold_for_each() -> None:
    batch = messages(V4, V4, V4)
    with pytest.raises(RecordTooLarge, match="body of 100 bytes, at most 99"):
        batch_record_bytes(batch, b"\x01T", V4, 99)
    batch[1].properties = b"x" * 32768
    with pytest.raises(RecordTooLarge, match="properties of 32768 bytes"):
        batch_record_bytes(batch, b"\x01T", V4, 1000)
