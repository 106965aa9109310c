"""Sends of one turn of the loop: one write, an answer for each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.unit.broker.rig import pull_ext, send_ext

from cometmq.broker.send.plain_sends import cut_run
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.frame import FRAME_BYTES_MAX, FrameDecoder, encode_bytes
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.log.new_messages import NewMessages, StoredMessages
from cometmq.store.message_store import MessageStore
from cometmq.testing.fake_connection import FakeConnection
from cometmq.testing.faulty_files import FaultyFiles, MemoryFile


def arrive(rig: Any, *commands: Command) -> list[Any]:
    """The replies to several requests of one turn."""
    return cast("list[Any]", rig.dispatch_all(list(commands)))


def send(opaque: int, body: bytes = b"x", topic: str = "T", **fields: str) -> Command:
    return Command(310, send_ext(topic, **fields), body, opaque=opaque)


class RunPeer(FakeConnection):
    """Takes several replies in one piece."""

    def send_frame(self, frame: bytes) -> None:
        self.sent.extend(FrameDecoder().feed(frame))

    add_frame = send_frame


def arrive_as_run(rig: Any, *commands: Command) -> list[Command]:
    """The replies to requests that a connection received at once."""
    assert cut_run is not None
    run = cut_run(b"".join(map(encode_bytes, commands)), 0, FRAME_BYTES_MAX)
    assert run is not None
    assert len(run) == len(commands)
    return cast("list[Command]", rig.dispatch_all([run], RunPeer()))


needs_runs = pytest.mark.skipif(cut_run is None, reason="cometmq was installed without twins")


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


@needs_runs
def test_no_sender_of_a_run_waits_in_vain_when_the_log_cannot_be_written(
    rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.send("T")

    def broken(self: CommitLog, data: bytes, *, is_group: bool = False) -> None:
        raise OSError("the disk is broken")

    with monkeypatch.context() as patch:
        patch.setattr(CommitLog, "write", broken)
        replies = arrive_as_run(rig, send(1), send(2))
        assert [(reply.opaque, reply.code) for reply in replies] == [(1, 1), (2, 1)]
        assert all("the disk is broken" in (reply.remark or "") for reply in replies)
    places = [
        reply.ext["queueOffset"] for reply in arrive_as_run(rig, send(3), send(4)) if reply.ext
    ]
    assert places == ["1", "2"]


@needs_runs
@pytest.mark.parametrize("can_remove", [True, False])
async def test_an_index_that_cannot_be_read_costs_no_message_of_a_run(
    rig: Any, monkeypatch: pytest.MonkeyPatch, can_remove: bool
) -> None:
    """A run enters its keys at once, for which pages of the index are read; its records are in the log by then."""
    rig.send("T")
    await rig.restart()
    rig.send("T")
    read_at, remove = MemoryFile.read_at, FaultyFiles.remove

    def broken(self: MemoryFile, position: int, length: int) -> bytes:
        if "/index/" in self.path:
            raise OSError("the disk is broken")
        return read_at(self, position, length)

    def stuck(self: FaultyFiles, path: str) -> None:
        if "/index/" in path:
            raise OSError("the disk is broken")
        remove(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFile, "read_at", broken)
        if not can_remove:
            patch.setattr(FaultyFiles, "remove", stuck)
        replies = arrive_as_run(rig, send(1), send(2))
    assert [reply.code for reply in replies] == ([0, 0] if can_remove else [1, 1])
    replies = arrive_as_run(rig, send(3), send(4))
    assert [(reply.ext or {})["queueOffset"] for reply in replies] == ["4", "5"]
    rig.crash()
    assert [record.queue_offset for record in rig.records("T")] == [*range(6)]
    assert len(rig.store.query("T", "K1", 10, 0, 1 << 62).parts) == 6


@needs_runs
def test_a_hidden_run_is_announced_later_and_keeps_no_frames_meanwhile(
    make_rig: Callable[..., Any],
) -> None:
    assert cut_run is not None
    rig = make_rig(flushDiskType="SYNC_FLUSH")
    rig.send("T")
    rig.store.flush()
    rig.peer.take()
    reader = FakeConnection(40001)
    assert not rig.dispatch(Command(11, pull_ext("T", 1, sysFlag="6"), opaque=5), reader)
    quick = send(1, b"x" * 1000, i="UNIQ_KEY\x01K1\x02WAIT\x01false")
    data = encode_bytes(quick) * 3
    references = sys.getrefcount(data)
    replies = rig.dispatch_all([cut_run(data, 0, FRAME_BYTES_MAX)], RunPeer())
    assert [reply.code for reply in replies] == [0, 0, 0]
    assert sys.getrefcount(data) == references
    assert not reader.take()
    rig.store.flush()
    rig.advance(0)
    (found,) = reader.take()
    assert (found.code, (found.ext or {})["nextBeginOffset"]) == (0, "4")
