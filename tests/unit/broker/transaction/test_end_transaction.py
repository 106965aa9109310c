"""END_TRANSACTION and what a send must look like to be ended by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cometmq.model.messages.record import decode_record
from cometmq.model.names import HALF_TOPIC
from cometmq.protocol.command import FLAG_ONEWAY, Command

HALF = "UNIQ_KEY\x01K1\x02WAIT\x01false\x02TRAN_MSG\x01true\x02PGROUP\x01PG\x02TAGS\x01A"
COMMIT, ROLLBACK = "8", "12"


def send_half(rig: Any, body: bytes = b"x", **fields: str) -> dict[str, str]:
    """What a producer sends in its END_TRANSACTION."""
    reply = rig.send("T", body, **{"i": HALF, "f": "4", "e": "1", **fields})
    assert reply.code == 0, reply.remark
    ext = reply.ext or {}
    assert ext["queueId"] == "1"
    return {
        "producerGroup": "PG",
        "tranStateTableOffset": ext["queueOffset"],
        "commitLogOffset": str(int(ext["msgId"][16:], 16)),
        "commitOrRollback": COMMIT,
        "msgId": "K1",
    }


def test_a_half_message_waits_for_its_end(rig: Any) -> None:
    end = send_half(rig)
    assert rig.store.max_offset("T", 1) == 0
    assert rig.ask(37, end).code == 0
    (record,) = rig.records("T", 1)
    assert (record.body, record.sys_flag) == (b"x", 8)
    assert record.properties["WAIT"] == "false"
    again = rig.ask(37, end)
    assert (again.code, "first decision counts" in again.remark) == (0, True)
    assert rig.store.max_offset("T", 1) == 1


@pytest.mark.parametrize("ids", [{"msgId": ""}, {"msgId": "?", "transactionId": "K1"}])
def test_what_a_producer_calls_the_message_may_be_left_out(rig: Any, ids: dict[str, str]) -> None:
    assert rig.ask(37, send_half(rig) | ids).code == 0
    assert rig.store.max_offset("T", 1) == 1


def test_a_rolled_back_message_is_gone(rig: Any) -> None:
    end = send_half(rig)
    assert rig.ask(37, {**end, "commitOrRollback": ROLLBACK}).code == 0
    rig.ask(37, end)
    assert rig.store.max_offset("T", 1) == 0


@pytest.mark.parametrize("state", ["0", "4", "5"])
def test_unknown_is_not_answered(rig: Any, state: str) -> None:
    end = send_half(rig)
    assert rig.dispatch(Command(code=37, ext={**end, "commitOrRollback": state}, opaque=7)) == []
    assert rig.transactions.open_count == 1


@pytest.mark.parametrize(
    ("wrong", "remark"),
    [
        ({"producerGroup": "Other"}, "The producer group wrong"),
        ({"tranStateTableOffset": "7"}, "The transaction state table offset wrong"),
        ({"commitLogOffset": "3"}, "Find prepared transaction message failed"),
        ({"commitLogOffset": "99999"}, "Find prepared transaction message failed"),
        ({"commitLogOffset": "-1"}, "Find prepared transaction message failed"),
        ({"msgId": "K2"}, "another message is there"),
        ({"msgId": "K2", "transactionId": "K2"}, "another message is there"),
    ],
)
def test_who_does_not_know_the_transaction_does_not_end_it(
    rig: Any, wrong: dict[str, str], remark: str
) -> None:
    end = send_half(rig)
    reply = rig.ask(37, end | wrong)
    assert (reply.code, reply.remark) == (1, remark)
    assert rig.store.max_offset("T", 1) == 0
    assert rig.transactions.open_count == 1


def test_a_message_that_is_no_half_message_cannot_be_committed(rig: Any) -> None:
    rig.ask(37, send_half(rig))
    (record,) = rig.records("T", 1)
    end = {
        "producerGroup": "PG",
        "tranStateTableOffset": "0",
        "commitLogOffset": str(record.physical_offset),
        "commitOrRollback": COMMIT,
        "msgId": "K1",
    }
    assert rig.ask(37, end).remark == "Find prepared transaction message failed"


def test_an_end_with_sync_flush_is_answered_when_the_disk_has_it(
    make_rig: Callable[..., Any],
) -> None:
    rig = make_rig(flushDiskType="SYNC_FLUSH")
    end = send_half(rig)
    assert rig.dispatch(Command(code=37, ext=end, opaque=7)) == []
    rig.store.flush()
    (reply,) = rig.peer.take()
    assert (reply.code, reply.opaque) == (0, 7)
    assert rig.dispatch(Command(code=37, ext=end, opaque=8, flag=FLAG_ONEWAY)) == []


def test_a_broker_may_reject_transactions(make_rig: Callable[..., Any]) -> None:
    rig = make_rig(rejectTransactionMessage="true", brokerIP1="127.0.0.1")
    reply = rig.send("T", i=HALF, f="4")
    assert reply.code == 16
    assert reply.remark == "the broker[127.0.0.1] sending transaction message is forbidden"


def test_a_committed_message_that_is_tried_again_is_no_half_message(rig: Any) -> None:
    reply = rig.send("%RETRY%CG", i=HALF + "\x02DELAY\x013", f="4", j="1", l="16")
    assert reply.code == 0
    assert (rig.store.max_offset(HALF_TOPIC, 0), rig.transactions.open_count) == (0, 0)
    assert rig.store.max_offset("SCHEDULE_TOPIC_XXXX", 2) == 1


async def test_producers_of_the_group_take_turns_in_being_asked(rig: Any) -> None:
    peers = [rig.make_peer(port) for port in (41000, 41001, 41002)]
    for number, peer in enumerate(peers):
        beat = {"clientID": f"c{number}", "producerDataSet": [{"groupName": "PG"}]}
        assert rig.ask(34, None, beat, peer).code == 0
        peer.take()
    rig.asked.is_closed = peers[2].is_closed = True
    end = send_half(rig, b"a")
    send_half(rig, b"b")
    rig.clock.advance(60_000_000)
    await rig.transactions.check_round()
    assert rig.transactions.open_count == 0, "far too old: discarded"
    now = str(rig.clock.wall_ms())
    ends = [send_half(rig, body, g=now) for body in (b"a", b"b", b"c", b"d")]
    rig.clock.advance(10)
    await rig.transactions.check_round()
    asked = [peer.take() for peer in peers]
    assert [len(commands) for commands in asked] == [2, 2, 0]
    for command in asked[0] + asked[1]:
        assert (command.code, command.flag & FLAG_ONEWAY) == (39, FLAG_ONEWAY)
        ext, shown = command.ext or {}, decode_record(command.body)
        assert (ext["msgId"], ext["transactionId"]) == ("K1", "K1")
        assert (shown.topic, shown.queue_id) == ("T", 1)
        assert ext["tranStateTableOffset"] == str(shown.queue_offset)
        assert ext["offsetMsgId"] == shown.offset_id
        answer = {key: ext[key] for key in ("tranStateTableOffset", "commitLogOffset")}
        answer |= {"producerGroup": "PG", "commitOrRollback": COMMIT, "msgId": "K1"}
        assert rig.ask(37, answer).code == 0
    assert sorted(record.body for record in rig.records("T", 1)) == [b"a", b"b", b"c", b"d"]
    for late in ends:
        rig.ask(37, late)
    assert rig.store.max_offset("T", 1) == 4
    assert end["tranStateTableOffset"] == "0"
