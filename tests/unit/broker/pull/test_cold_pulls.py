"""Pulls of what is not in memory: loaded beside the loop, then answered as always."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from tests.unit.broker.rig import pull_ext

from cometmq.broker.filters.message_filter import MessageFilter
from cometmq.broker.pull.pull_subscription import PullSubscriptions
from cometmq.model.messages.record import decode_records
from cometmq.native.choice import twin
from cometmq.native.cut_pull import PULL
from cometmq.protocol.command import Command
from cometmq.protocol.frame import FRAME_BYTES_MAX, FrameDecoder, encode_bytes
from cometmq.store.read import loading
from cometmq.store.read.loading import Stretch
from cometmq.testing.fake_connection import FakeConnection

MakeRig = Callable[..., Any]
COUNT = 40
BULK_PULL = 29001


class Loads:
    """Stands before the loader: counts, and lets something happen before a load is done."""

    def __init__(self, rig: Any) -> None:
        self.seen: list[str] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self._rig = rig
        self._load = rig.store.loader.load
        rig.store.loader.load = self.load

    def load(self, stretches: Sequence[Stretch]) -> Future[None] | None:
        future: Future[None] | None = self._load(stretches)
        if future is not None:
            self.seen.append(stretches[0].path.split("/")[2])
            future.result(10)
            self.meanwhile()
        return future


@pytest.fixture
def cold(make_rig: MakeRig) -> Any:
    """A broker that has started anew with 40 messages in its files, and nothing in memory."""
    rig = make_rig()
    for number in range(COUNT):
        rig.send("T", b"%d" % number * 300)
    rig.pull("T")  # The group is known.
    rig.store.flush()
    asyncio.run(rig.restart())
    rig.files.evict()
    yield rig
    rig.store.close()


def bodies(reply: Command) -> list[bytes]:
    data = b"".join(bytes(part) for part in reply.body_parts or ())
    if reply.ext is not None and "count" in reply.ext:
        data = data[: len(data) - 4 * int(reply.ext["count"])]
    return [record.body for record in decode_records(data)]


def bulk(rig: Any) -> Command:
    ext = {"consumerGroup": "CG", "topic": "T", "queueId": "0", "offset": "0"}
    ext |= {"maxBytes": "1000000", "maxCount": "1000", "subscription": "*"}
    reply: Command = rig.ask(BULK_PULL, ext)
    return reply


EXPECTED = [b"%d" % number * 300 for number in range(COUNT)]


def test_the_entries_and_the_records_are_loaded_then_the_pull_is_answered(cold: Any) -> None:
    loads = Loads(cold)
    reply = cold.pull("T", 3)
    assert bodies(reply) == EXPECTED[3:35]
    assert loads.seen == ["consumequeue", "commitlog"]
    assert cold.stats.group_get("T", "CG").count == 32
    again = cold.pull("T", 3)
    assert loads.seen == ["consumequeue", "commitlog"], "now they are in memory"
    assert (bodies(again), again.ext) == (bodies(reply), reply.ext)


@pytest.mark.skipif(twin("pulls") is None, reason="cometmq was installed without twins")
def test_a_pull_whose_header_is_known_does_the_same(cold: Any) -> None:
    loads = Loads(cold)
    data = encode_bytes(Command(11, pull_ext("T", 3), opaque=9, language="JAVA"))
    cut = cold.ports.main.cut
    assert cut(data, 0, FRAME_BYTES_MAX) is None
    (known,) = FrameDecoder().feed(data, cut)
    assert known.code == PULL
    (reply,) = cold.dispatch_all([known], None)
    assert bodies(reply) == EXPECTED[3:35]
    assert loads.seen == ["consumequeue", "commitlog"]


def test_a_bulk_pull_does_the_same(cold: Any) -> None:
    loads = Loads(cold)
    assert bodies(bulk(cold)) == EXPECTED
    assert loads.seen == ["consumequeue", "commitlog"]


@pytest.mark.parametrize("expression", ["A", "*"])
def test_a_pull_with_a_filter_does_the_same(cold: Any, expression: str) -> None:
    loads = Loads(cold)
    assert bodies(cold.pull("T", 0, subscription=expression)) == EXPECTED[:32]
    assert loads.seen == ["consumequeue", "commitlog"]


def test_what_was_just_sent_is_answered_at_once(rig: Any) -> None:
    rig.send("T")
    loads = Loads(rig)
    rig.peer.run_handler = None
    assert bodies(rig.pull("T")) == [b"x"]
    assert loads.seen == []


def test_if_too_many_wait_it_is_read_in_the_loop(
    cold: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "WAITING_MAX", 0)
    loads = Loads(cold)
    cold.peer.run_handler = None
    assert bodies(cold.pull("T")) == EXPECTED[:32]
    assert bodies(bulk(cold)) == EXPECTED
    assert loads.seen == []


@pytest.mark.parametrize("ask", [lambda rig: rig.pull("T"), bulk], ids=["pull", "bulk"])
def test_a_topic_that_is_deleted_meanwhile_is_not_there(cold: Any, ask: Any) -> None:
    def delete() -> None:
        cold.topics.remove("T")
        cold.store.delete_topic("T")

    Loads(cold).meanwhile = delete
    assert ask(cold).code == 17


def test_a_group_that_is_reset_meanwhile_hears_of_it(cold: Any) -> None:
    loads = Loads(cold)
    loads.meanwhile = lambda: cold.offsets.reset("CG", "T", 0, 7)
    reply = cold.pull("T")
    assert (reply.code, reply.ext["nextBeginOffset"]) == (21, "7")


def test_who_filters_by_a_function_since_then_asks_again(
    cold: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        wanted = MessageFilter(function="f")
        monkeypatch.setattr(PullSubscriptions, "filter_of", lambda *asked: wanted)

    Loads(cold).meanwhile = change
    reply = cold.pull("T", 3)
    assert (reply.code, reply.ext["nextBeginOffset"]) == (20, "3")


def test_the_position_that_comes_with_the_pull_is_kept_once(cold: Any) -> None:
    loads = Loads(cold)
    loads.meanwhile = lambda: cold.offsets.commit("CG", "T", 0, 20)
    cold.pull("T", sysFlag="5", commitOffset="9")
    assert cold.offsets.query("CG", "T", 0) == 20


def test_who_has_gone_meanwhile_is_not_parked(cold: Any) -> None:
    peer = FakeConnection()

    def leave() -> None:
        peer.is_closed = True
        cold.store.delete_topic("T")

    Loads(cold).meanwhile = leave
    cold.pull("T", 0, sysFlag="6", peer=peer)
    assert cold.long_polling._count == 0


def test_a_disk_error_is_for_the_read_to_tell(cold: Any) -> None:
    open_file = cold.files.open

    def fails(path: str, *, mapped: bool, writable: bool = True) -> Any:
        if not mapped and not writable:
            raise OSError(5, "the disk is broken")
        return open_file(path, mapped=mapped, writable=writable)

    cold.files.open = fails
    assert bodies(cold.pull("T")) == EXPECTED[:32]
