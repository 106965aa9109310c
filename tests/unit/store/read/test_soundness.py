"""A damaged record is never handed out, whichever way it is read; what is healthy around it is."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cometmq.model.messages.record import decode_record, decode_records
from cometmq.store.log.damage import Damage, RecordBeingHealed
from cometmq.store.log.new_messages import NewMessage, Stored
from cometmq.store.message_store import MessageStore
from cometmq.store.read.bulk_reader import BulkLimits
from cometmq.store.read.read_results import GetStatus
from cometmq.store.read.soundness import REMEMBERED_SECONDS

Lab = Any
Make = Callable[..., NewMessage]

COUNT = 12
BAD = 5
BODY_AT = 88
FILE_BYTES = 1 << 16
BULK = BulkLimits(1 << 20, 1000, 1000)
PLACES = {
    "size": 3,
    "magic": 5,
    "checksum": 10,
    "queue id": 15,
    "queue offset": 27,
    "physical offset": 34,
    "system flag, an IPv6 host": 39,
    "body length": 87,
    "body": BODY_AT + 7,
    "topic length": -17,
    "topic": -16,
    "length of the properties": -14,
}
"""Where a bit is flipped; negative from the end. Topic T and twelve bytes of properties are there."""


def body(number: int) -> bytes:
    return f"message {number:3}".encode() * 10


def properties(number: int) -> bytes:
    return f"KEYS\x01key{number:03}\x02".encode()


def filled(lab: Lab, message: Make) -> tuple[MessageStore, list[Stored]]:
    """Messages of one queue, every other one followed by one of another queue."""
    lab.change(log={"file_bytes": FILE_BYTES}, queues={"file_bytes": 20 * 100})
    store = lab.open()
    stored: list[Stored] = []
    for number in range(COUNT):
        stored.append(
            store.put(
                message(
                    body(number),
                    properties=properties(number),
                    keys=(f"key{number:03}",),
                    tags_code=number,
                )
            )
        )
        if number % 2:
            store.put(message("of another queue", queue_id=1))
    return store, stored


def flip(lab: Lab, record: Stored, at: int) -> None:
    """Write into the file from outside, as a disk does that rots; ``at`` is negative from the end of the record."""
    position = record.physical_offset + (at if at >= 0 else record.size_bytes + at)
    path = Path(lab.root, "commitlog", f"{position - position % FILE_BYTES:020d}")
    with path.open("r+b") as file:
        file.seek(position % FILE_BYTES)
        old = file.read(1)[0]
        file.seek(position % FILE_BYTES)
        file.write(bytes((old ^ 0x10,)))


def pulled(store: MessageStore, **options: Any) -> list[bytes]:
    bodies: list[bytes] = []
    offset = 0
    for _ in range(3 * COUNT):
        found = store.get("T", 0, offset, 32, **options)
        bodies += [one.body for part in found.parts for one in decode_records(part)]
        offset = found.next_offset
        if offset >= store.max_offset("T", 0):
            return bodies
    raise AssertionError(f"no end at {offset}")


def pulled_in_bulk(store: MessageStore, **options: Any) -> list[bytes]:
    bodies: list[bytes] = []
    offset = 0
    for _ in range(3 * COUNT):
        found = store.get_bulk("T", 0, offset, COUNT, BULK, **options)
        bodies += [one.body for part in found.parts for one in decode_records(part)]
        offset = found.next_offset
        if offset >= COUNT:
            return bodies
    raise AssertionError(f"no end at {offset}")


HEALTHY = [body(number) for number in range(COUNT) if number != BAD]
WAYS: dict[str, Callable[[MessageStore], list[bytes]]] = {
    "pull": pulled,
    "pull by tag": lambda store: pulled(store, tags=lambda code: True),
    "pull by record": lambda store: pulled(store, record=lambda record: True),
    "bulk": pulled_in_bulk,
    "bulk by tag": lambda store: pulled_in_bulk(store, tags=lambda code: True),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES)
def test_no_way_of_reading_hands_out_a_damaged_record(
    lab: Lab, message: Make, way: str, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    lab.change(read={"unchecked_bytes": 0})
    store, stored = filled(lab, message)
    assert WAYS[way](store) == [body(number) for number in range(COUNT)]
    lab.clock.ms += int(REMEMBERED_SECONDS * 1000)
    store.maintain()
    lab.clock.ms += int(REMEMBERED_SECONDS * 1000)
    store.maintain()
    flip(lab, stored[BAD], PLACES[place])
    caplog.clear()
    assert WAYS[way](store) == HEALTHY
    assert WAYS[way](store) == HEALTHY
    assert store.damages.found_count == 1
    assert store.damages.known == [
        Damage(stored[BAD].physical_offset, stored[BAD].size_bytes, "T", 0, BAD)
    ]
    told = [one for one in caplog.records if one.getMessage().startswith("record damaged")]
    assert [one.levelno for one in told] == [logging.ERROR]
    position = stored[BAD].physical_offset
    assert f"{0:020d} position={position} offset={position}" in told[0].getMessage()
    assert f"topic=T queue=0 queue_offset={BAD}" in told[0].getMessage()


def test_a_single_damaged_message_is_passed_over(lab: Lab, message: Make) -> None:
    lab.change(read={"unchecked_bytes": 0})
    store, stored = filled(lab, message)
    flip(lab, stored[BAD], BODY_AT)
    found = store.get("T", 0, BAD, 1)
    assert (found.status, found.next_offset, found.parts) == (
        GetStatus.MESSAGE_WAS_REMOVING,
        BAD + 1,
        [],
    )


def test_queries_leave_a_damaged_record_out(lab: Lab, message: Make) -> None:
    lab.change(read={"unchecked_bytes": 0})
    store, stored = filled(lab, message)
    flip(lab, stored[BAD], BODY_AT)
    assert store.record_at(stored[BAD].physical_offset) is None
    assert store.query("T", f"key{BAD:03}", 10, 0, 1 << 60).parts == []
    assert len(store.query("T", f"key{BAD + 1:03}", 10, 0, 1 << 60).parts) == 1
    view = store.record_at(stored[BAD + 1].physical_offset)
    assert view is not None
    assert decode_record(view).body == body(BAD + 1)
    assert store.damages.found_count == 1


def test_an_offset_where_no_record_begins_is_no_damage_unless_one_was_there(
    lab: Lab, message: Make
) -> None:
    store, stored = filled(lab, message)
    assert store.record_at(stored[BAD].physical_offset + 1) is None
    assert store.damages.found_count == 0
    flip(lab, stored[BAD], PLACES["magic"])
    assert store.record_at(stored[BAD].physical_offset, expected=True) is None
    assert store.damages.found_count == 1


def test_the_end_of_the_log_that_this_process_wrote_is_not_checked(lab: Lab, message: Make) -> None:
    """It is in memory, where nothing rots: what is written into the file from outside shows what is not checked."""
    store, stored = filled(lab, message)
    flip(lab, stored[BAD], BODY_AT)
    assert len(pulled_raw(store)) == COUNT
    lab.change(read={"unchecked_bytes": store.max_physical - stored[BAD].physical_offset})
    store.apply(lab.config)
    assert len(pulled_raw(store)) == COUNT
    lab.change(read={"unchecked_bytes": store.max_physical - stored[BAD].physical_offset - 1})
    store.apply(lab.config)
    assert pulled(store) == HEALTHY


def test_the_check_can_be_switched_off(lab: Lab, message: Make) -> None:
    lab.change(read={"unchecked_bytes": 0, "check_crc": False})
    store, stored = filled(lab, message)
    flip(lab, stored[BAD], BODY_AT)
    assert len(pulled_raw(store)) == COUNT
    assert store.record_at(stored[BAD].physical_offset) is not None


def pulled_raw(store: MessageStore) -> list[bytes]:
    found = store.get("T", 0, 0, 32)
    return [
        one.body for part in found.parts for one in decode_records(bytes(part), check_crc=False)
    ]


def test_readers_wait_for_a_healer_but_not_for_ever(lab: Lab, message: Make) -> None:
    lab.change(read={"unchecked_bytes": 0, "heal_wait_ms": 3000})
    store, stored = filled(lab, message)
    flip(lab, stored[BAD], BODY_AT)
    asked: list[Damage] = []

    def heal(damage: Damage) -> bool:
        asked.append(damage)
        return True

    store.damages.healer = heal
    found = store.get("T", 0, 0, 32)
    assert (found.count, found.next_offset) == (BAD, BAD)
    found = store.get("T", 0, BAD, 32)
    assert (found.count, found.next_offset) == (0, BAD)
    assert store.get_bulk("T", 0, BAD, COUNT, BULK).next_offset == BAD
    with pytest.raises(RecordBeingHealed):
        store.record_at(stored[BAD].physical_offset)
    assert len(asked) == 1
    lab.clock.ms += 3000
    assert pulled(store) == HEALTHY
    assert store.record_at(stored[BAD].physical_offset) is None
    assert len(asked) == 1


def test_readers_go_on_at_once_when_the_healer_gives_up(lab: Lab, message: Make) -> None:
    lab.change(read={"unchecked_bytes": 0})
    store, stored = filled(lab, message)
    flip(lab, stored[BAD], BODY_AT)
    store.damages.healer = lambda damage: True
    assert store.get("T", 0, BAD, 32).next_offset == BAD
    store.damages.given_up(stored[BAD].physical_offset)
    store.damages.healer = lambda damage: False
    assert pulled(store) == HEALTHY


def test_what_was_overwritten_with_sound_bytes_is_handed_out_again(lab: Lab, message: Make) -> None:
    lab.change(read={"unchecked_bytes": 0})
    store, stored = filled(lab, message)
    view = store.record_at(stored[BAD].physical_offset)
    assert view is not None
    sound = bytes(view)
    flip(lab, stored[BAD], PLACES["queue offset"])
    store.maintain()
    assert pulled(store) == HEALTHY
    file = store.overwrite(stored[BAD].physical_offset, sound)
    file.sync()
    file.close()
    store.damages.healed(stored[BAD].physical_offset)
    assert pulled(store) == [body(number) for number in range(COUNT)]
    assert (store.damages.healed_count, store.damages.known) == (1, [])
