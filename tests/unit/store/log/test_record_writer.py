"""Many records at once are what single ones are, whatever their shapes."""

from __future__ import annotations

import pytest

from cometmq.base.errors import RecordTooLarge
from cometmq.model.address import pack_host
from cometmq.model.messages.record import encode_record
from cometmq.model.messages.record_layout import host_bits, topic_field
from cometmq.store.log.new_messages import NewMessage, NewMessages
from cometmq.store.log.record_writer import lay_out, record_sizes

V4, V6 = pack_host("10.0.0.1", 9), pack_host("::1", 10)


def new_messages(bodies: list[bytes], hosts: list[bytes]) -> NewMessages:
    return NewMessages.of(
        [
            NewMessage(
                topic="T",
                queue_id=number,
                body=body,
                properties=b"A\x01%d" % (len(body) + number % 2),
                flag=number,
                sys_flag=1 | 48,
                born_timestamp=1000 + number,
                born_host=hosts[number % len(hosts)],
                reconsume_times=7 + number,
                prepared_transaction_offset=number,
            )
            for number, body in enumerate(bodies)
        ]
    )


@pytest.mark.parametrize("store_host", [V4, V6])
@pytest.mark.parametrize("hosts", [[V4], [V6], [b""], [V4, V6, b""]])
@pytest.mark.parametrize("topics", [[b"T"], [b"t" * 300], [b"T", b"t" * 127, b"t" * 128]])
@pytest.mark.parametrize(
    "bodies",
    [[b"x"], [b"", b"one", b"two", b"three", b"four"], [b"one", b"two", b"six", b"ten"], [b""] * 9],
)
@pytest.mark.parametrize("are_texts_alike", [False, True])
def test_records_are_the_same(
    store_host: bytes,
    hosts: list[bytes],
    topics: list[bytes],
    bodies: list[bytes],
    are_texts_alike: bool,
) -> None:
    new = new_messages(bodies, hosts)
    if not are_texts_alike:
        new.properties[-1] += b"0"
    names = [topics[number % len(topics)] for number in range(len(bodies))]
    expected, places = [], [5000]
    for number, (name, text) in enumerate(zip(names, new.properties, strict=True)):
        born_host = new.born_hosts[number] or store_host
        record = encode_record(
            topic=name,
            queue_id=number,
            queue_offset=70 + number,
            physical_offset=places[-1],
            flag=number,
            sys_flag=1 | host_bits(len(born_host), len(store_host)),
            born_timestamp=1000 + number,
            born_host=born_host,
            store_timestamp=99,
            store_host=store_host,
            reconsume_times=7 + number,
            prepared_transaction_offset=number,
            body=bodies[number],
            properties=text,
        )
        expected.append(record)
        places.append(places[-1] + len(record))
    fields = [*map(topic_field, names)]
    sizes = record_sizes(new, fields, store_host, 1000)
    assert sizes == [*map(len, expected)]
    queue_offsets = [70 + number for number in range(len(bodies))]
    laid_out = lay_out(new, sizes, fields, queue_offsets, places[:-1], 99, store_host)
    assert laid_out == b"".join(expected)


def test_limits_hold_for_each() -> None:
    new = new_messages([b"x", b"x" * 100, b"x"], [V4])
    fields = [b"\x01T"] * 3
    with pytest.raises(RecordTooLarge, match="body of 100 bytes, at most 99"):
        record_sizes(new, fields, V4, 99)
    new.properties[1] = b"x" * 32768
    with pytest.raises(RecordTooLarge, match="properties of 32768 bytes"):
        record_sizes(new, fields, V4, 1000)


@pytest.mark.parametrize("has_counts", [True, False])
def test_a_part_has_the_keys_of_its_messages(has_counts: bool) -> None:
    keys = [["a"], ["b"], ["c"]] if not has_counts else [["a", "b"], [], ["c"]]
    new = NewMessages.of(
        [NewMessage(topic="T", queue_id=0, body=b"", properties=b"", keys=own) for own in keys]
    )
    if not has_counts:
        new.key_counts = None
    assert [new.slice(at, at + 1).keys for at in range(3)] == keys
    assert new.slice(1, 3).keys == [key for own in keys[1:] for key in own]
