"""What a replica sends is believed only if it is the record that was written here."""

from __future__ import annotations

import pytest

from cometmq.broker.replication.ha_wire import Piece
from cometmq.broker.replication.record_fetch import NotHealed, RecordFetch
from cometmq.model.address import pack_host
from cometmq.model.messages.record import encode_record
from cometmq.store.log.damage import Damage

PLACE = 1000
HOST = pack_host("127.0.0.1", 10911)
CONTEXT = b"what comes before"


def record(body: bytes = b"hello", queue_offset: int = 7, place: int = PLACE) -> bytes:
    return encode_record(
        topic=b"T",
        queue_id=1,
        queue_offset=queue_offset,
        physical_offset=place,
        flag=0,
        sys_flag=0,
        born_timestamp=1,
        born_host=HOST,
        store_timestamp=2,
        store_host=HOST,
        reconsume_times=0,
        prepared_transaction_offset=0,
        body=body,
        properties=b"",
    )


SOUND = record()
FLIPPED = SOUND.replace(b"hello", b"hallo")
DAMAGE = Damage(PLACE, len(SOUND), "T", 1, 7)


def fetched(fetch: RecordFetch, data: bytes) -> bytes | None:
    return fetch.came(Piece(fetch.asked_from, data))


def test_the_record_comes_in_pieces() -> None:
    fetch = RecordFetch(DAMAGE, CONTEXT, FLIPPED)
    assert fetch.asked_from == PLACE - len(CONTEXT)
    data = CONTEXT + SOUND + b"the next record"
    at = fetch.asked_from
    assert fetch.came(Piece(at, b"")) is None
    for start in range(0, 100, 10):
        assert fetch.came(Piece(at + start, data[start : start + 10])) is None
    assert fetch.came(Piece(at + 100, data[100:])) == SOUND


def test_the_first_record_of_the_log_is_asked_for_without_its_first_byte() -> None:
    """Who reports an end at 0 has nothing, and would get what the replica likes."""
    first = record(place=0)
    fetch = RecordFetch(Damage(0, len(first), "T", 1, 7), b"", first.replace(b"hello", b"hallo"))
    assert fetch.asked_from == 1
    assert fetched(fetch, first[1:]) == first


@pytest.mark.parametrize("own", [SOUND[:8] + b"\0" + SOUND[9:], bytes(len(SOUND)), FLIPPED])
def test_the_bytes_before_it_show_that_it_is_the_same_log(own: bytes) -> None:
    assert fetched(RecordFetch(DAMAGE, CONTEXT, own), CONTEXT + SOUND) == SOUND


@pytest.mark.parametrize("own", [SOUND[:8] + b"\0" + SOUND[9:], FLIPPED])
def test_what_is_left_of_it_shows_that_it_is_the_same_record(own: bytes) -> None:
    other = bytes(len(CONTEXT))
    assert fetched(RecordFetch(DAMAGE, CONTEXT, own), other + SOUND) == SOUND


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        (FLIPPED, "damaged, too"),
        (record(queue_offset=8), "another message"),
        (record(place=PLACE + 1), "damaged, too"),
        (record(body=b"longer than that"), "as the size"),
        (bytes(len(SOUND)), "as the size"),
    ],
)
def test_what_is_not_the_record_is_refused(theirs: bytes, reason: str) -> None:
    with pytest.raises(NotHealed, match=reason):
        fetched(RecordFetch(DAMAGE, CONTEXT, FLIPPED), CONTEXT + theirs)


def test_a_record_of_another_log_is_refused() -> None:
    with pytest.raises(NotHealed, match="another"):
        fetched(RecordFetch(DAMAGE, CONTEXT, FLIPPED), bytes(len(CONTEXT)) + record(b"other"))


def test_the_same_bytes_heal_nothing() -> None:
    with pytest.raises(NotHealed, match="same bytes"):
        fetched(RecordFetch(DAMAGE, CONTEXT, SOUND), CONTEXT + SOUND)


def test_a_replica_that_has_nothing_there() -> None:
    fetch = RecordFetch(DAMAGE, CONTEXT, FLIPPED)
    with pytest.raises(NotHealed, match="goes on at 4096"):
        fetch.came(Piece(4096, b"x"))
    assert fetch.came(Piece(fetch.asked_from, b"")) is None
    with pytest.raises(NotHealed, match="nothing there"):
        fetch.came(Piece(fetch.asked_from, b""))
