"""Sinks against a real store: who may write, what is found again, and what survives a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from cometmq.base.errors import DiskFull
from cometmq.broker.sink import sink_keeper, sink_processor
from cometmq.broker.sink.sink_keeper import PAUSE_SECONDS, SinkKeeper
from cometmq.broker.sink.sink_record import SinkRecord
from cometmq.model.messages.sink_mark import SinkMark
from cometmq.protocol.command import Command
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.json_file import JsonFile
from cometmq.store.meta.sink_lanes import LaneRow, SinkLanesContent, SinkLanesFile

KEYS = [f"{number:032X}" for number in range(100)]


class Sinks:
    """The broker's part for sinks, and a writer's requests."""

    def __init__(self, rig: Any) -> None:
        self.rig = rig

    @property
    def record(self) -> SinkRecord:
        record: SinkRecord = self.rig.rooms.sink.record
        return record

    @property
    def keeper(self) -> SinkKeeper:
        keeper: SinkKeeper = self.rig.rooms.sink.keeper
        return keeper

    def saved(self) -> SinkLanesContent:
        content = SinkLanesFile("/store/config", self.rig.files).load()
        assert content is not None
        return content

    def open(self, batch: int = 0, writer: str = "w", *, again: bool = False) -> tuple[int, int]:
        reply = self.ask(
            29002,
            sink="s",
            partition="0",
            batch=str(batch),
            writer=writer,
            again="true" if again else "false",
        )
        assert reply.code == 0, reply.remark
        assert reply.ext is not None
        return int(reply.ext["firstOffset"]), int(reply.ext["endOffset"])

    def send(self, key: str, batch: int = 0, writer: str | None = "w", more: str = "") -> int:
        fields = {} if writer is None else {"sink": writer}
        text = f"UNIQ_KEY\x01{key}\x02__SINK\x01s/0/{batch}{more}"
        reply: Command = self.rig.send("T", b"x", i=text, **fields)
        return reply.code

    def stored(self, first: int, end: int, batch: int = 0, others: str = "false") -> list[str]:
        """The keys found, read piece by piece."""
        keys: list[str] = []
        while first < end:
            reply = self.ask(
                29003,
                sink="s",
                partition="0",
                batch=str(batch),
                firstOffset=str(first),
                endOffset=str(end),
                others=others,
            )
            assert reply.code == 0, reply.remark
            assert reply.ext is not None
            body = bytes(reply.body)
            assert len(body) == 24 * int(reply.ext["count"])
            for at in range(0, len(body), 24):
                physical_offset = int.from_bytes(body[at : at + 8], "big")
                assert self.rig.store.record_at(physical_offset) is not None
                keys.append(body[at + 8 : at + 24].hex().upper())
            first = int(reply.ext["nextOffset"])
        return keys

    def ask(self, code: int, **fields: str) -> Command:
        reply: Command = self.rig.ask(code, fields)
        return reply


@pytest.fixture
def sinks(rig: Any) -> Sinks:
    """One whose file says that somebody writes, so that lanes are opened at once."""
    made = Sinks(rig)
    asyncio.run(made.keeper.begin())
    return made


def test_what_earlier_attempts_stored_is_found(sinks: Sinks) -> None:
    first, end = sinks.open(writer="first")
    assert first == end
    for key in KEYS[:5]:
        assert sinks.send(key, writer="first") == 0
        sinks.rig.send("U")
    first, end = sinks.open(writer="second")
    assert sinks.stored(first, end) == KEYS[:5]
    assert sinks.stored(first, end, batch=1) == []
    first, end = sinks.open(batch=1, writer="third")
    assert first == end


def test_a_long_log_is_read_in_pieces(sinks: Sinks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_processor, "SCAN_BYTES", 300)
    sinks.open()
    for key in KEYS:
        sinks.send(key)
    first, end = sinks.open()
    assert sinks.stored(first, end) == KEYS


def test_rows_of_other_partitions_are_found_when_asked_for(sinks: Sinks) -> None:
    sinks.open(writer="w")
    for key, partition in zip(KEYS[:4], (0, 1, 2, 0), strict=True):
        sinks.rig.send("T", b"x", i=f"UNIQ_KEY\x01{key}\x02__SINK\x01s/{partition}/0")
    sinks.rig.send("T", b"x", i=f"UNIQ_KEY\x01{KEYS[5]}\x02__SINK\x01s/1/1")
    sinks.rig.send("T", b"x", i=f"UNIQ_KEY\x01{KEYS[6]}\x02__SINK\x01t/1/0")
    end = sinks.rig.store.max_physical
    assert sinks.stored(0, end) == [KEYS[0], KEYS[3]]
    assert sinks.stored(0, end, others="true") == [KEYS[1], KEYS[2]]


def test_sends_of_a_writer_that_was_replaced_are_refused(sinks: Sinks) -> None:
    sinks.open(writer="old")
    sinks.open(writer="new")
    assert sinks.send(KEYS[0], writer="old") == 604
    assert sinks.rig.batch("T", (b"x", "A\x01b"), sink="old").code == 604
    assert sinks.send(KEYS[1], writer="new") == 0
    assert sinks.rig.batch("T", (b"x", "A\x01b"), sink="new").code == 0
    assert sinks.rig.send("T").code == 0, "a message of nobody's sink"
    assert len(sinks.rig.records("T")) == 3


def test_copies_of_a_row_are_no_rows(sinks: Sinks) -> None:
    first, _ = sinks.open()
    sinks.send(KEYS[0])
    sinks.send(KEYS[1], more="\x02DELAY\x011")
    copy = f"UNIQ_KEY\x01{KEYS[0]}\x02__SINK\x01s/0/0\x02REAL_TOPIC\x01T"
    sinks.rig.send("T", i=copy)
    sinks.rig.send("%RETRY%CG", i=f"UNIQ_KEY\x01{KEYS[0]}\x02__SINK\x01s/0/0")
    assert sinks.stored(first, sinks.rig.store.max_physical) == [KEYS[0], KEYS[1]]


def test_keys_that_no_sink_made_are_told_as_zeros(sinks: Sinks) -> None:
    first, _ = sinks.open()
    sinks.send("short")
    assert sinks.stored(first, sinks.rig.store.max_physical) == ["0" * 32]


async def test_the_first_lane_after_a_pause_waits_for_the_disk(rig: Any) -> None:
    sinks = Sinks(rig)
    waiting: list[Coroutine[Any, Any, None]] = []
    rig.peer.run_handler = lambda work, body_bytes: waiting.append(work)
    assert rig.dispatch(open_command()) == []
    await waiting[0]
    (reply,) = rig.peer.take()
    assert reply.code == 0
    assert sinks.keeper.is_writing
    assert sinks.saved().is_writing


async def test_a_full_disk_opens_no_lane(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **settings: object) -> Callable[[], None]:
        def write() -> None:
            raise DiskFull("no space")

        return write

    monkeypatch.setattr(SinkLanesFile, "saving", full)
    waiting: list[Coroutine[Any, Any, None]] = []
    rig.peer.run_handler = lambda work, body_bytes: waiting.append(work)
    rig.dispatch(open_command())
    await waiting[0]
    (reply,) = rig.peer.take()
    assert (reply.code, reply.remark) == (14, "the lanes of sinks cannot be saved: no space")


@pytest.mark.parametrize(
    ("code", "fields", "remark"),
    [
        (29002, {"sink": "a/b"}, "expected a sink id"),
        (29002, {"partition": "-1"}, "must be 0 or more"),
        (29002, {"writer": ""}, "a writer's name"),
        (29002, {"writer": "x" * 101}, "a writer's name"),
        (29003, {"firstOffset": "-1"}, "is negative"),
        (29003, {"firstOffset": "7"}, "no record of the log begins at offset 7"),
        (29004, {"sink": ""}, "expected a sink id"),
    ],
)
def test_refusals(sinks: Sinks, code: int, fields: dict[str, str], remark: str) -> None:
    sinks.open()
    sinks.send(KEYS[0])
    good = {"sink": "s", "partition": "0", "batch": "0", "writer": "w"}
    good |= {"firstOffset": "0", "endOffset": "1000"}
    reply = sinks.ask(code, **(good | fields))
    assert reply.code == 29
    assert remark in (reply.remark or "")


class TestOverRestarts:
    def test_rows_since_the_last_save_are_found_in_the_log(self, sinks: Sinks) -> None:
        sinks.rig.send("T")
        sinks.open(batch=6, writer="first")
        sinks.send(KEYS[0], batch=6, writer="first")
        sinks.open(batch=7, writer="second")
        sinks.send(KEYS[1], batch=7, writer="second")
        sinks.send(KEYS[2], batch=7, writer="second")
        sinks.rig.crash()
        (lane,) = sinks.record.rows()
        assert (lane.sink, lane.partition, lane.batch) == ("s", 0, 7)
        end = sinks.rig.store.max_physical
        assert sinks.stored(lane.first_offset, end, batch=7) == [KEYS[1], KEYS[2]]
        assert not sinks.keeper.is_writing

    async def test_nothing_is_walked_over_when_nobody_wrote(
        self, sinks: Sinks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sinks.open(batch=1)
        sinks.send(KEYS[0], batch=1)
        monkeypatch.setattr(MessageStore, "sink_marks_since", None)
        await sinks.rig.restart()
        (lane,) = sinks.record.rows()
        assert lane.batch == 1

    async def test_a_pause_ends_all_writers(self, sinks: Sinks) -> None:
        sinks.open(batch=1)
        sinks.rig.clock.advance(PAUSE_SECONDS + 1)
        await sinks.keeper.check()
        assert not sinks.keeper.is_writing
        assert sinks.send(KEYS[0], batch=1) == 604
        await sinks.keeper.begin()
        sinks.open(batch=1, again=True)
        assert sinks.send(KEYS[0], batch=1) == 0

    async def test_lanes_are_saved_as_the_log_grows(
        self, sinks: Sinks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sink_keeper, "GROWTH_BYTES_MAX", 500)
        sinks.open(batch=1)
        sinks.send(KEYS[0], batch=1)
        await sinks.keeper.check()
        assert sinks.saved().log_offset == 0
        for key in KEYS[:10]:
            sinks.send(key, batch=1)
        await sinks.keeper.check()
        saved = sinks.saved()
        assert saved.log_offset == sinks.rig.store.max_physical
        assert saved.is_writing
        sinks.rig.crash()
        (lane,) = sinks.record.rows()
        assert (lane.batch, lane.first_offset) == (1, 0)

    def test_a_full_disk_does_not_keep_the_broker_from_starting(self, sinks: Sinks) -> None:
        sinks.open(batch=1)
        sinks.send(KEYS[0], batch=1)
        sinks.rig.store.flush()
        sinks.rig.files.set_free(0)
        sinks.rig.crash()
        (lane,) = sinks.record.rows()
        assert lane.batch == 1
        assert sinks.saved().is_writing

    def test_lanes_of_an_older_file_are_read(self, sinks: Sinks) -> None:
        content = b'{"isWriting":false,"logOffset":0,"lanes":[["s",0,3,17]]}'
        JsonFile("/store/config/sinkLanes.json", sinks.rig.files).save(content)
        sinks.rig.crash()
        assert [tuple(row) for row in sinks.record.rows()] == [("s", 0, 3, 17, "")]

    async def test_a_closed_sink_stays_forgotten(self, sinks: Sinks) -> None:
        sinks.open(batch=1)
        assert sinks.ask(29004, sink="s").code == 0
        await sinks.rig.restart()
        assert list(sinks.record.rows()) == []


class TestOfASlave:
    """What a slave keeps of its master's sinks, for the day on which it is promoted."""

    def keeper(self, rig: Any) -> tuple[SinkKeeper, SinkRecord]:
        record = SinkRecord()
        file = SinkLanesFile("/slave/config", rig.files)
        return SinkKeeper(record=record, store=rig.store, file=file, clock=rig.clock), record

    def lane(self, record: SinkRecord) -> tuple[int, int]:
        (row,) = record.rows()
        return row.batch, row.first_offset

    def test_rows_that_came_before_anybody_told_are_found_in_the_log(self, sinks: Sinks) -> None:
        sinks.open(batch=1)
        sinks.send(KEYS[0], batch=1)
        keeper, record = self.keeper(sinks.rig)
        keeper.follow()
        keeper.resume()
        assert self.lane(record) == (1, 0)

    def test_it_walks_from_where_the_master_told(
        self, sinks: Sinks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keeper, record = self.keeper(sinks.rig)
        keeper.follow()
        sinks.open(batch=1)
        sinks.send(KEYS[0], batch=1)
        reply = sinks.ask(29006)
        content = SinkLanesContent.decode(bytes(reply.body))
        assert keeper.told(content) is None  # the file need not be saved for so little
        at = sinks.rig.store.max_physical
        sinks.open(batch=2, writer="second")
        sinks.send(KEYS[1], batch=2, writer="second")
        walked: list[int] = []
        walk = MessageStore.sink_marks_since

        def spy(store: MessageStore, offset: int) -> Iterator[tuple[SinkMark, int]]:
            walked.append(offset)
            return walk(store, offset)

        monkeypatch.setattr(MessageStore, "sink_marks_since", spy)
        keeper.resume()
        assert (self.lane(record), walked) == ((2, at), [at])

    def test_what_its_master_told_is_saved_now_and_then(
        self, sinks: Sinks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sink_keeper, "GROWTH_BYTES_MAX", 1)
        keeper, _ = self.keeper(sinks.rig)
        keeper.follow()
        sinks.open(batch=1)
        sinks.send(KEYS[0], batch=1)
        write = keeper.told(sinks.keeper.content())
        assert write is not None
        write()
        again, record = self.keeper(sinks.rig)
        again.resume()
        assert self.lane(record) == (1, 0)

    def test_a_master_that_is_one_no_longer_says_so_in_its_file(self, sinks: Sinks) -> None:
        content = b'{"isWriting":false,"logOffset":0,"lanes":[["s",0,3,17]]}'
        sinks.rig.files.make_directory("/slave/config")
        JsonFile("/slave/config/sinkLanes.json", sinks.rig.files).save(content)
        keeper, record = self.keeper(sinks.rig)
        keeper.follow()
        sinks.open(batch=4)
        sinks.send(KEYS[0], batch=4)
        keeper.resume()
        assert self.lane(record) == (4, 0)

    def test_lanes_behind_the_end_of_its_log_begin_there(self, sinks: Sinks) -> None:
        """Their rows never came, or were cut. Others are in their place, at other offsets."""
        sinks.rig.send("T")
        end = sinks.rig.store.max_physical
        lanes = [LaneRow("s", 0, 7, end + 1000)]
        keeper, record = self.keeper(sinks.rig)
        keeper.follow()
        keeper.told(SinkLanesContent(True, end + 2000, lanes))
        keeper.resume()
        assert self.lane(record) == (7, end)
        cut, record = self.keeper(sinks.rig)
        cut.told(SinkLanesContent(True, end + 2000, lanes))
        cut.cut(end)
        sinks.rig.send("T")
        cut.resume()
        assert self.lane(record) == (7, end)

    def test_a_slave_has_no_lanes_to_tell(self, sinks: Sinks) -> None:
        sinks.keeper.is_running = False
        assert sinks.ask(29006).code == 14


def open_command() -> Command:
    ext = {"sink": "s", "partition": "0", "batch": "0", "writer": "w"}
    return Command(code=29002, ext=ext, opaque=7)
