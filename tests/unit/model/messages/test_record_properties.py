from __future__ import annotations

import pytest

from cometmq.model.address import pack_host
from cometmq.model.messages.record import BadRecord, encode_record, properties_text


def record(*, topic: bytes = b"T", born: str = "1.2.3.4", stored: str = "1.2.3.4") -> bytes:
    return encode_record(
        topic=topic,
        queue_id=1,
        queue_offset=2,
        physical_offset=3,
        flag=0,
        sys_flag=(16 if ":" in born else 0) | (32 if ":" in stored else 0),
        born_timestamp=4,
        born_host=pack_host(born, 5),
        store_timestamp=6,
        store_host=pack_host(stored, 7),
        reconsume_times=0,
        prepared_transaction_offset=0,
        body=b"body",
        properties="ü\x01v\x02".encode(),
    )


@pytest.mark.parametrize(
    "data",
    [
        record(),
        record(topic=b"T" * 200),
        record(born="::1"),
        record(stored="::1"),
        record(born="::1", stored="::1"),
    ],
)
def test_properties_are_found_behind_hosts_and_topics_of_any_length(data: bytes) -> None:
    assert properties_text(memoryview(data)) == "ü\x01v\x02"
    for end in range(len(data)):
        with pytest.raises(BadRecord):
            properties_text(memoryview(data)[:end])


def test_properties_must_be_utf8() -> None:
    with pytest.raises(BadRecord, match="not UTF-8"):
        properties_text(record().replace("ü".encode(), b"\xff\xff"))
