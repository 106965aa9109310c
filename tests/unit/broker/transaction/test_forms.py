"""What is stored, compared with what RocketMQ 4.9.7 and 5.5.0 stored for the same transactions."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cometmq.broker.transaction.transaction_forms import (
    check_count_of,
    committed_form,
    copy_form,
    discarded_form,
    followed_offset,
    follows,
    half_form,
    identity_of,
    mark_form,
    marked_offsets,
    question_body,
)
from cometmq.model.messages.properties import parse_properties
from cometmq.model.messages.record import Record, decode_record, peek
from cometmq.model.messages.record_layout import MAGIC_BLANK
from cometmq.model.names import HALF_OP_TOPIC, HALF_TOPIC, TRANSACTION_DISCARD_TOPIC
from cometmq.store.log.new_messages import NewMessage

GOLDEN = Path(__file__).parents[3] / "golden"


def log_records(version: str) -> Iterator[Record]:
    with tarfile.open(GOLDEN / f"store-{version}" / "store.tar.xz") as archive:
        for member in archive:
            if "/commitlog/" not in member.name or not member.isfile():
                continue
            file = archive.extractfile(member)
            assert file is not None
            data, position = file.read(), 0
            while position + 8 <= len(data):
                size, magic = peek(data, position)
                if size <= 0 or magic == MAGIC_BLANK:
                    break
                yield decode_record(data, position)
                position += size


@pytest.fixture(scope="module", params=["4.9.7", "5.5.0"])
def golden(request: pytest.FixtureRequest) -> list[Record]:
    topics = (HALF_TOPIC, HALF_OP_TOPIC, TRANSACTION_DISCARD_TOPIC, "TopicTx")
    return [record for record in log_records(request.param) if record.topic in topics]


@pytest.fixture
def halves(golden: list[Record]) -> list[Record]:
    return [record for record in golden if record.topic == HALF_TOPIC]


def fields(message: NewMessage | Record) -> dict[str, object]:
    names = (
        *("topic", "queue_id", "body", "flag", "sys_flag", "born_timestamp", "born_host"),
        "reconsume_times",
    )
    return {name: getattr(message, name) for name in names}


def pairs_of(message: NewMessage) -> dict[str, str]:
    return parse_properties(message.properties.decode())


def test_a_committed_message_is_rocketmqs(golden: list[Record], halves: list[Record]) -> None:
    committed = [record for record in golden if record.topic == "TopicTx"]
    assert len(committed) == 3
    for theirs in committed:
        (half,) = (h for h in halves if h.physical_offset == theirs.prepared_transaction_offset)
        ours = committed_form(half)
        assert ours is not None
        assert fields(ours) == fields(theirs)
        assert ours.prepared_transaction_offset == theirs.prepared_transaction_offset
        places = {"REAL_TOPIC": "TopicTx", "REAL_QID": str(theirs.queue_id)}
        # RocketMQ 5 takes these two out again.
        assert pairs_of(ours) == {**theirs.properties, **places}
        assert followed_offset(theirs) == half.physical_offset
        assert follows(theirs, half)


def test_a_half_message_is_rocketmqs(halves: list[Record]) -> None:
    theirs = halves[0]
    sent = {
        name: value
        for name, value in theirs.properties.items()
        if name not in ("REAL_TOPIC", "REAL_QID", "WAIT")
    }
    message = NewMessage(
        topic="TopicTx",
        queue_id=1,
        body=theirs.body,
        properties=b"",
        sys_flag=4,
        born_timestamp=theirs.born_timestamp,
        born_host=theirs.born_host,
    )
    ours = half_form(message, sent, is_wait=True)
    assert fields(ours) == fields(theirs)
    assert pairs_of(ours) == theirs.properties


def test_a_copy_counts_the_checks_and_remembers_the_first(halves: list[Record]) -> None:
    half = next(record for record in halves if record.body == b"tx unknown")
    ours = copy_form(half, 4, 1)
    theirs = next(record for record in halves if record.queue_offset == 8)
    assert fields(ours) == fields(theirs)
    assert pairs_of(ours) == {**theirs.properties, "TRAN_PREPARED_QUEUE_OFFSET": "4"}
    assert ours.prepared_transaction_offset == ~half.physical_offset
    assert (identity_of(half), check_count_of(half)) == (4, 0)
    assert check_count_of(theirs) == 1


def test_a_discarded_message_is_rocketmqs(golden: list[Record], halves: list[Record]) -> None:
    (theirs,) = (record for record in golden if record.topic == TRANSACTION_DISCARD_TOPIC)
    ours = discarded_form(halves[-1])
    assert fields(ours) == fields(theirs)
    assert pairs_of(ours) == theirs.properties


def test_a_mark_is_that_of_rocketmq_4(golden: list[Record]) -> None:
    marks = [record for record in golden if record.topic == HALF_OP_TOPIC]
    ours = mark_form(5, 17)
    assert (ours.topic, ours.queue_id, ours.body) == (HALF_OP_TOPIC, 0, b"5")
    assert (ours.tags_code, ours.born_timestamp, ours.born_host) == (ord("d"), 17, b"")
    for theirs in marks:
        assert pairs_of(ours) == theirs.properties
    assert [offset for mark in marks for offset in marked_offsets(mark.body)] == [0, 1, 5, 6, 9]


@pytest.mark.parametrize("body", [b"x", b"1,,x", b"-1", b"1 2", b"9" * 30, b"\xff"])
def test_a_mark_that_says_nothing(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - a broken text is one, too
        marked_offsets(body)


def test_a_question_shows_the_message_at_its_destination(halves: list[Record]) -> None:
    half = halves[1]
    shown = decode_record(question_body(half))
    assert (shown.topic, shown.queue_id) == ("TopicTx", int(half.properties["REAL_QID"]))
    assert (shown.queue_offset, shown.physical_offset) == (half.queue_offset, half.physical_offset)
    assert (shown.body, shown.properties) == (half.body, half.properties)
    assert (shown.born_host, shown.store_host) == (half.born_host, half.store_host)


@pytest.mark.parametrize(
    "destination", [{}, {"REAL_TOPIC": HALF_TOPIC}, {"REAL_TOPIC": "../x"}, {"REAL_QID": "-1"}]
)
def test_a_half_message_without_a_destination(
    halves: list[Record], destination: dict[str, str]
) -> None:
    properties = {"REAL_TOPIC": "T", "REAL_QID": "0", **destination} if destination else {}
    half = with_properties(halves[0], properties)
    assert committed_form(half) is None


def with_properties(record: Record, properties: dict[str, str]) -> Record:
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
    return Record(
        **{
            name: getattr(record, name)
            for name in Record.__slots__
            if name not in ("_properties", "properties_text")
        },
        properties_text=text,
    )


def test_what_follows_from_nothing(golden: list[Record], halves: list[Record]) -> None:
    assert [followed_offset(half) for half in halves] == [None] * len(halves)
    committed = next(record for record in golden if record.topic == "TopicTx")
    others = [h for h in halves if h.physical_offset != committed.prepared_transaction_offset]
    assert not any(follows(committed, half) for half in others)
