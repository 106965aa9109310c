"""Half messages, decisions and checks, on a store in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from cometmq.base.errors import DiskFull, RecordTooLarge
from cometmq.broker.transaction import open_table
from cometmq.broker.transaction.open_at_start import TRANSACTION_GROUP
from cometmq.model.names import HALF_OP_TOPIC, HALF_TOPIC
from cometmq.protocol.refusal import Refused
from cometmq.store.log.new_messages import NewMessage
from cometmq.testing.faulty_files import Outage

MakeRig = Callable[..., Any]


def test_a_half_message_is_not_delivered_before_it_is_committed(rig: Any) -> None:
    place = rig.half(b"a")
    (half,) = rig.halves
    assert (half.sys_flag, half.queue_id, rig.delivered) == (1, 0, [])
    assert (half.properties["REAL_TOPIC"], half.properties["REAL_QID"]) == ("T", "2")
    assert rig.commit(place) is not None
    (delivered,) = rig.records("T", 2)
    assert (delivered.body, delivered.sys_flag, delivered.flag) == (b"a", 9, 7)
    assert delivered.prepared_transaction_offset == place.physical_offset
    assert delivered.properties["PGROUP"] == "PG"
    assert rig.marks == [b"0"]
    assert rig.created == [HALF_TOPIC, HALF_OP_TOPIC, "T"]


def test_what_is_rolled_back_is_never_delivered(rig: Any) -> None:
    place = rig.half()
    assert rig.roll_back(place) is not None
    assert rig.commit(place) is None
    assert (rig.delivered, rig.marks) == ([], [b"0"])
    assert rig.round() == []


async def test_the_first_decision_counts(rig: Any) -> None:
    place = rig.half(b"a")
    assert rig.commit(place) is not None
    assert rig.commit(place) is None
    assert rig.roll_back(place) is None
    rig.crash()
    assert rig.commit(place) is None
    await rig.restart()
    assert rig.commit(place) is None
    assert (rig.delivered, rig.marks) == ([b"a"], [b"0"])


def test_a_failed_commit_leaves_the_transaction_open(rig: Any) -> None:
    place = rig.half(b"a" * 7000)
    free = rig.files.space("/store")[1]
    rig.files.set_free(0)
    filler = NewMessage(topic="Filler", queue_id=0, body=b"x" * 8000, properties=b"")
    with contextlib.suppress(DiskFull):
        while True:
            rig.store.put(filler)
    with pytest.raises(DiskFull):
        rig.commit(place)
    assert rig.transactions.open_count == 1
    rig.files.set_free(free)
    rig.clock.advance(10)
    assert rig.commit(place) is not None
    assert rig.delivered == [b"a" * 7000]


def test_nobody_is_asked_too_early(rig: Any) -> None:
    rig.half()
    assert rig.round(5.9) == []
    (asked,) = rig.round(0.2)
    assert (asked.queue_offset, asked.properties["TRANSACTION_CHECK_TIMES"]) == (1, "1")
    assert asked.properties["TRAN_PREPARED_QUEUE_OFFSET"] == "0"
    assert rig.marks == [b"0"]


def test_a_message_may_be_immune_for_longer(rig: Any) -> None:
    rig.half(properties=b"CHECK_IMMUNITY_TIME_IN_SECONDS\x01100")
    assert rig.round(90) == []
    assert len(rig.round(20)) == 1


def test_the_answer_to_a_check_counts_once(rig: Any) -> None:
    first = rig.half(b"a")
    (second,) = rig.round()
    (third,) = rig.round()
    assert rig.commit(second) is not None
    assert rig.commit(third) is None
    assert rig.commit(first) is None
    assert rig.delivered == [b"a"]
    assert rig.marks == [b"0", b"1", b"2"]
    assert rig.round() == []


def test_a_late_decision_of_the_sender_counts_for_the_newest_copy(rig: Any) -> None:
    first = rig.half(b"a")
    rig.round()
    rig.crash()
    assert rig.commit(first) is not None
    assert rig.delivered == [b"a"]
    assert rig.round() == []


def test_asked_too_often(rig: Any) -> None:
    place = rig.half(b"a")
    counts = [
        int(half.properties["TRANSACTION_CHECK_TIMES"]) for _ in range(5) for half in rig.round()
    ]
    assert counts == [1, 2, 3]
    assert rig.discarded == [b"a"]
    assert rig.transactions.open_count == 0
    assert rig.roll_back(place) is None
    assert rig.delivered == []
    assert "TRANS_CHECK_MAX_TIME_TOPIC" in rig.created


def test_a_discarded_transaction_is_checked_anew(rig: Any) -> None:
    rig.half(b"a")
    for _ in range(4):
        rig.round()
    (discarded,) = rig.records("TRANS_CHECK_MAX_TIME_TOPIC", 0)
    rig.transactions.check_anew(discarded.physical_offset)
    assert rig.transactions.open_count == 1
    rig.crash()
    (asked,) = rig.round()
    assert (asked.body, asked.properties["TRANSACTION_CHECK_TIMES"]) == (b"a", "1")
    assert rig.commit(asked) is not None
    assert rig.delivered == [b"a"]
    assert rig.round() == []


def test_an_open_transaction_is_checked_as_if_for_the_first_time(rig: Any) -> None:
    place = rig.half(b"a")
    for _ in range(3):
        rig.round()
    rig.transactions.check_anew(place.physical_offset)
    for outage in (None, Outage.PROCESS_KILL):
        if outage is not None:
            rig.crash(outage)
        assert rig.transactions.open_count == 1
    (asked,) = rig.round()
    assert asked.properties["TRANSACTION_CHECK_TIMES"] == "1"
    # It is still the same transaction, whichever half message names it.
    assert rig.commit(place) is not None
    assert rig.commit(asked) is None
    assert rig.delivered == [b"a"]


def test_what_cannot_be_checked_anew(rig: Any) -> None:
    place = rig.half(b"a")
    rig.commit(place)
    (delivered,) = rig.records("T", 2)
    for offset, reason in (
        (place.physical_offset, "its transaction has ended"),
        (delivered.physical_offset, "there is none"),
        (10**9, "there is none"),
        (-1, "there is none"),
    ):
        with pytest.raises(Refused, match=reason):
            rig.transactions.check_anew(offset)
    assert (rig.transactions.open_count, len(rig.halves)) == (0, 1)


def test_the_count_of_checks_survives(rig: Any) -> None:
    rig.half(b"a")
    rig.round()
    rig.crash()
    (asked,) = rig.round()
    assert asked.properties["TRANSACTION_CHECK_TIMES"] == "2"


def test_a_check_that_nobody_could_be_asked_leaves_no_trace(rig: Any) -> None:
    rig.asked.is_closed = True
    rig.half(b"a")
    log_end = rig.store.max_physical
    for _ in range(20):
        assert rig.round() == []
    assert (rig.discarded, rig.marks, len(rig.halves)) == ([], [], 1)
    assert rig.store.max_physical == log_end
    rig.asked.is_closed = False
    (asked,) = rig.round()
    assert asked.properties["TRANSACTION_CHECK_TIMES"] == "1"
    assert rig.commit(asked) is not None
    assert rig.delivered == [b"a"]


def test_that_there_is_nobody_to_ask_is_said_once_a_minute(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rig.asked.is_closed = True
    for number in range(50):
        rig.half(b"%d" % number)
    with caplog.at_level("INFO"):
        for _ in range(60):
            rig.round(2)
    said = [one.getMessage() for one in caplog.records if "nobody to ask" in one.getMessage()]
    assert len(said) == 2, "in two minutes"
    assert "count=50" in said[0]


@pytest.mark.parametrize("restart", ["none", "crash", "stop"])
async def test_a_commit_wins_although_the_broker_has_discarded_the_message(
    rig: Any, restart: str
) -> None:
    async def start_again() -> None:
        if restart == "crash":
            rig.crash()
        elif restart == "stop":
            await rig.restart()

    place, other = rig.half(b"a"), rig.half(b"b")
    copies = rig.round()
    for _ in range(4):
        rig.round()
    assert sorted(rig.discarded) == [b"a", b"b"]
    await start_again()
    assert rig.commit(place) is not None
    assert rig.delivered == [b"a"]
    await start_again()
    # Once, whichever of its half messages names it.
    for again in (place, *(copy for copy in copies if copy.body == b"a")):
        assert rig.commit(again) is None
    assert rig.delivered == [b"a"]
    assert rig.transactions.open_count == 0
    assert rig.round() == []
    assert rig.roll_back(other) is None
    assert rig.delivered == [b"a"]


def test_a_late_commit_ends_what_is_checked_anew(rig: Any) -> None:
    place = rig.half(b"a")
    for _ in range(4):
        rig.round()
    (discarded,) = rig.records("TRANS_CHECK_MAX_TIME_TOPIC", 0)
    rig.transactions.check_anew(discarded.physical_offset)
    assert rig.commit(place) is not None
    assert (rig.delivered, rig.transactions.open_count) == ([b"a"], 0)
    assert rig.commit(place) is None


def test_what_was_rolled_back_after_it_was_checked_anew_stays_so(rig: Any) -> None:
    place = rig.half(b"a")
    for _ in range(4):
        rig.round()
    (discarded,) = rig.records("TRANS_CHECK_MAX_TIME_TOPIC", 0)
    rig.roll_back(rig.transactions.check_anew(discarded.physical_offset))
    assert rig.commit(place) is None
    assert rig.delivered == []


def test_too_late_without_an_index(make_rig: MakeRig) -> None:
    rig = make_rig(messageIndexEnable="false")
    place = rig.half(b"a")
    for _ in range(4):
        rig.round()
    assert rig.discarded == [b"a"]
    assert rig.commit(place) is None
    assert rig.delivered == []


def test_too_old_for_the_log(make_rig: MakeRig) -> None:
    rig = make_rig(fileReservedTime="1")
    rig.half(b"a", b"CHECK_IMMUNITY_TIME_IN_SECONDS\x0199999")
    assert rig.round(3600) == []
    assert rig.round(1) == []
    assert rig.discarded == [b"a"]


def test_positions_follow_the_oldest_open_transaction(rig: Any) -> None:
    places = [rig.half(b"%d" % number) for number in range(6)]
    for number in (0, 1, 3):
        rig.commit(places[number])
    rig.store.flush()
    rig.transactions.save()
    assert positions(rig) == (2, 0)
    rig.half(b"later")
    for number in (2, 4, 5):
        rig.roll_back(places[number])
    rig.store.flush()
    rig.transactions.save()
    assert positions(rig) == (6, 3)
    rig.round()
    rig.store.flush()
    rig.transactions.save()
    assert positions(rig) == (7, 6)


def positions(rig: Any) -> tuple[int, int]:
    return (
        rig.offsets.query(TRANSACTION_GROUP, HALF_TOPIC, 0),
        rig.offsets.query(TRANSACTION_GROUP, HALF_OP_TOPIC, 0),
    )


def test_positions_do_not_pass_what_the_disk_does_not_have(rig: Any) -> None:
    place = rig.half(b"a")
    rig.store.flush()
    rig.commit(place)
    rig.transactions.save()
    assert positions(rig) == (-1, -1)
    rig.offsets.save_if_changed()
    rig.crash(Outage.POWER_LOSS)
    # The commit was lost, but the half message was not: somebody is asked.
    (asked,) = rig.round()
    assert rig.commit(asked) is not None
    assert rig.delivered == [b"a"]


async def test_a_start_reads_from_the_saved_positions_on(rig: Any) -> None:
    for number in range(300):
        place = rig.half(b"%d" % number)
        if number != 290:
            rig.roll_back(place)
    await rig.stop()
    read: list[tuple[str, int]] = []
    rig.is_master = False
    rig.open()
    assert positions(rig) == (290, 290)
    entries = rig.store.entries

    def counted(topic: str, queue_id: int, offset: int, count: int) -> Any:
        found = entries(topic, queue_id, offset, count)
        read.append((topic, len(found)))
        return found

    rig.store.entries = counted
    rig.duties.resume()
    assert read == [(HALF_OP_TOPIC, 9), (HALF_TOPIC, 10)]
    assert rig.transactions.open_count == 1


async def test_a_stop_notes_the_positions_once_the_disk_has_them(rig: Any) -> None:
    rig.roll_back(rig.half())
    rig.flush_on_demand()
    await rig.transactions.stop()
    assert positions(rig) == (1, 1)


def test_too_many_open_transactions(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_table, "OPEN_MAX", 2)
    rig.half()
    rig.half()
    with pytest.raises(Refused) as caught:
        rig.half()
    assert caught.value.code == 2
    assert len(rig.halves) == 2


def test_properties_leave_room_for_those_of_later_checks(rig: Any) -> None:
    with pytest.raises(RecordTooLarge):
        rig.half(properties=b"a\x01" + b"b" * 32600)
    rig.half(properties=b"a\x01" + b"b" * 32400)
    assert len(rig.round()) == 1


def test_a_lost_half_message_is_let_go(rig: Any) -> None:
    rig.half()
    rig.store.record_at = lambda offset, *, expected=False: None
    assert rig.round() == []
    assert rig.transactions.open_count == 0
