"""Sends of one turn of the loop: one write, an answer for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.unit.broker.rig import send_ext

from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.store.log.new_messages import NewMessages, StoredMessages
from cometmq.store.message_store import MessageStore


def arrive(rig: Any, *commands: Command) -> list[Any]:
    """The replies to several requests of one turn."""
    return cast("list[Any]", rig.dispatch_all(list(commands)))


def send(opaque: int, body: bytes = b"x", topic: str = "T", **fields: str) -> Command:
    return Command(310, send_ext(topic, **fields), body, opaque=opaque)


def test_each_send_of_a_turn_gets_its_own_place(rig: Any) -> None:
    replies = arrive(rig, send(1, b"a"), send(2, b"b"), send(3, b"c", e="1"))
    assert [(reply.opaque, reply.code) for reply in replies] == [(1, 0), (2, 0), (3, 0)]
    places = [(reply.ext["queueId"], reply.ext["queueOffset"]) for reply in replies]
    assert places == [("0", "0"), ("0", "1"), ("1", "0")]
    assert len({reply.ext["msgId"] for reply in replies}) == 3
    assert rig.stats.topic_put("T").count == 3


def test_a_bad_send_among_good_ones_is_refused_alone(rig: Any) -> None:
    too_large = b"." * (rig.live.current.store.log.message_bytes_max + 1)
    replies = arrive(rig, send(1), send(2, too_large), send(3, i="DELAY\x01x"), send(4))
    codes = {reply.opaque: reply.code for reply in replies}
    assert codes == {1: 0, 2: 13, 3: 13, 4: 0}
    assert all(reply.ext["MSG_REGION"] for reply in replies)
    assert rig.store.max_offset("T", 0) == 2


def test_a_question_behind_a_send_of_the_same_turn_knows_of_it(rig: Any) -> None:
    where = Command(30, {"topic": "T", "queueId": "0"}, opaque=2)
    sent, answer, last = arrive(rig, send(1), where, send(3))
    assert (sent.opaque, answer.opaque, last.opaque) == (1, 2, 3)
    assert answer.ext == {"offset": "1"}
    assert last.ext["queueOffset"] == "1"


def test_one_way_sends_are_stored_and_not_answered(rig: Any) -> None:
    oneway = send(1, b"quiet")
    oneway.flag = FLAG_ONEWAY
    replies = arrive(rig, oneway, send(2))
    assert [reply.opaque for reply in replies] == [2]
    assert rig.store.max_offset("T", 0) == 2


def test_sends_of_a_turn_wait_together_and_count_one_by_one(make_rig: Callable[..., Any]) -> None:
    rig = make_rig(flushDiskType="SYNC_FLUSH")
    arrive(rig, send(0))  # the first file of a log begins with a record of its own
    rig.store.flush()
    rig.peer.take()
    quick = send(3, i="WAIT\x01false")
    assert [reply.opaque for reply in arrive(rig, send(1), send(2), quick, send(4))] == [3]
    assert rig.core.durability.waiting == 3
    assert (
        rig.store.watermarks.flushed.waiting == 1 + 1
    )  # the senders, and who shows it to consumers
    rig.store.flush()
    assert [(reply.opaque, reply.code) for reply in rig.peer.take()] == [(1, 0), (2, 0), (4, 0)]
    assert rig.core.durability.waiting == 0


def test_nobody_waits_in_vain_when_the_store_breaks(
    rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: MessageStore, new: NewMessages) -> list[StoredMessages | Exception]:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(MessageStore, "append_each", broken)
    replies = arrive(rig, send(1), send(2))
    assert [(reply.opaque, reply.code) for reply in replies] == [(1, 1), (2, 1)]
    assert all("a bug" in (reply.remark or "") for reply in replies)
