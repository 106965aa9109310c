"""A master and a slave under a controller, joined without a network: whatever the logs, they agree in the end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.broker.replication.test_feed_and_follow import FILE_BYTES, LIMITS, TinyLog

from cometmq.base.errors import RemoteProtocolError
from cometmq.broker.replication.autoswitch.epoch_follow import Begins, EpochFollow, NeverWere
from cometmq.broker.replication.autoswitch.epochs import Epoch, EpochTable
from cometmq.broker.replication.autoswitch.switch_master import Reign, SwitchWire
from cometmq.broker.replication.autoswitch.switch_wire import (
    MasterFrames,
    encode_report,
    encode_slave_handshake,
)
from cometmq.broker.replication.feed import Feed
from cometmq.broker.replication.follow import (
    Append,
    CutTail,
    Instruction,
    Note,
    Reconnect,
    Refuse,
    Report,
    Say,
)
from cometmq.broker.replication.ha_wire import (
    ONLY_READS,
    REPORT,
    SlaveIdentity,
    TransferReader,
)

SLAVE = SlaveIdentity(2, is_learner=False, from_last_file=False)


class Member:
    """A broker: its log, one record a letter, and its epochs."""

    def __init__(self, *reigns: tuple[int, int], start: int = 0) -> None:
        """Args: reigns: epoch and number of records, each of ten bytes that tell their epoch."""
        self.log = TinyLog([], start)
        self.table = EpochTable()
        self.is_master = True
        for epoch, count in reigns:
            self.reign(epoch, count)

    def reign(self, epoch: int, count: int) -> None:
        self.table.begin(Epoch(epoch, self.log.end))
        self.log.records += [bytes([epoch]) * 10] * count

    def wire(self) -> SwitchWire:
        return SwitchWire(
            Reign(
                is_master=lambda: self.is_master,
                epochs=lambda: self.table,
                log_end=lambda: self.log.end,
                confirmed=lambda: self.log.end,
            )
        )

    def note(self, what: object) -> None:
        if isinstance(what, Begins):
            self.table.begin(what.epoch)
        elif isinstance(what, NeverWere):
            self.table.cut(what.end)


def _follow(master: Member, slave: Member, *, connections: int = 30) -> list[Instruction]:
    """Let the slave follow until it has everything. What it was told beside the everyday."""
    follow = EpochFollow(slave.log, FILE_BYTES, lambda: slave.table, lambda: SLAVE)
    notable: list[Instruction] = []
    for _ in range(connections):
        wire, reader, feed = master.wire(), MasterFrames(), Feed(LIMITS, now=0)
        todo = follow.connected(0)
        now, is_open = 0.0, True
        while is_open:
            sent = b""
            for instruction in todo:
                match instruction:
                    case Say(data):
                        sent += data
                    case Report(offset):
                        sent += encode_report(offset)
                    case Append(offset, data):
                        slave.log.append(offset, data)
                    case Note(what):
                        slave.note(what)
                    case CutTail(offset, _):
                        slave.log.cut(offset)
                        slave.table.cut(offset)
                        is_open = False
                    case Reconnect():
                        is_open = False
                    case Refuse():
                        return [*notable, instruction]
                if isinstance(instruction, CutTail | Reconnect):
                    notable.append(instruction)
            if not is_open:
                follow.lost()
                break
            report = wire.feed(sent) if sent else None
            answer = wire.take_words()
            if report is not None:
                feed.reported(report, master.log.span, now)
            piece = feed.next_piece(master.log.span)
            if piece is not None:
                offset, size_bytes = piece[0], wire.fit(*piece)
                answer += wire.header(offset, size_bytes) + master.log.read(offset, size_bytes)
                feed.sent(size_bytes, now)
            elif not answer:
                now += 6
                beat = feed.heartbeat(master.log.span, now)
                if beat is not None:
                    answer = wire.header(beat, 0)
                    feed.sent(0, now)
                if now > 40 and (follow.is_following or not master.log.end):
                    return notable
                assert now < 100, "it waits for ever"
            room = reader.room()
            room[: len(answer)] = answer
            todo = [
                one for frame in reader.received(len(answer)) for one in follow.came(frame, now)
            ]
    raise AssertionError(f"not the same after {connections} connections: {notable}")


def _same(master: Member, slave: Member) -> bool:
    return slave.log.data == master.log.data and list(slave.table) == list(master.table)


def test_an_empty_slave_gets_the_log_with_its_epochs() -> None:
    master, slave = Member((1, 3), (2, 4), (5, 2)), Member()
    assert _follow(master, slave) == []
    assert _same(master, slave)


def test_what_the_master_never_got_is_cut() -> None:
    master, slave = Member((1, 3), (3, 2)), Member((1, 3), (2, 4))
    (cut,) = _follow(master, slave)
    assert isinstance(cut, CutTail)
    assert cut.offset == 30
    assert _same(master, slave)


def test_a_reign_without_records_is_forgotten() -> None:
    master, slave = Member((1, 5)), Member((1, 3), (2, 0))
    assert _follow(master, slave) == []
    assert _same(master, slave)


def test_two_reigns_at_the_same_place_are_told_apart() -> None:
    """The first stored something that nobody else has. RocketMQ's slave keeps it, and both logs differ for ever."""
    master = Member((1, 3), (2, 0))
    master.reign(3, 4)
    slave = Member((1, 3), (2, 2))
    (cut,) = _follow(master, slave)
    assert isinstance(cut, CutTail)
    assert cut.offset == 30
    assert _same(master, slave)


def test_a_master_that_lost_its_end_and_went_on_in_the_same_epoch() -> None:
    master, slave = Member((1, 8)), Member((1, 4))
    slave.log.records[3] = b"\x77" * 10
    notable = _follow(master, slave)
    assert CutTail in map(type, notable)
    assert _same(master, slave)


def test_logs_that_have_nothing_in_common_but_their_beginning() -> None:
    master, slave = Member((2, 3)), Member((1, 2))
    (cut,) = _follow(master, slave)
    assert isinstance(cut, CutTail)
    assert cut.offset == 0
    assert _same(master, slave)


def test_a_log_from_before_the_controller_is_compared_and_gets_its_epochs() -> None:
    master, slave = Member((1, 3), (2, 4)), Member((1, 5))
    slave.table = EpochTable()
    slave.log.records = master.log.records[:5]
    assert _follow(master, slave) == []
    assert _same(master, slave)


def test_logs_without_a_common_epoch_are_refused() -> None:
    slave = Member((1, 3), start=FILE_BYTES)
    assert isinstance(_follow(Member((7, 3)), slave)[-1], Refuse)


def test_the_next_epoch_is_noted_with_a_heartbeat() -> None:
    master, slave = Member((1, 3), (2, 0)), Member((1, 3))
    assert _follow(master, slave) == []
    assert _same(master, slave)


@given(
    st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 5), st.booleans()), max_size=8),
)
def test_any_elections(reigns: list[tuple[str, int, bool]]) -> None:
    members = {"A": Member(), "B": Member()}
    for epoch, (name, count, is_copied) in enumerate(reigns, start=1):
        master = members[name]
        slave = members["B" if name == "A" else "A"]
        master.reign(epoch, count)
        if is_copied:
            _follow(master, slave)
            assert slave.log.data == master.log.data
            assert list(slave.table) == list(master.table)


def test_who_is_no_master_tells_no_epochs() -> None:
    broker = Member((1, 3))
    broker.is_master = False
    with pytest.raises(RemoteProtocolError, match="no master"):
        broker.wire().feed(encode_slave_handshake(SLAVE))


@pytest.mark.parametrize("chunk_bytes", [1, 3, 8, 16])
def test_who_only_reads_is_answered_on_the_default_wire(chunk_bytes: int) -> None:
    broker = Member((1, 3))
    broker.is_master = False
    wire = broker.wire()
    stream = REPORT.pack(ONLY_READS) + REPORT.pack(5)
    found = [wire.feed(stream[at : at + chunk_bytes]) for at in range(0, len(stream), chunk_bytes)]
    assert [one for one in found if one is not None] == [5]
    assert wire.only_reads
    (piece,) = TransferReader().feed(wire.header(5, 2) + b"ab")
    assert piece == (5, b"ab")
    assert wire.fit(5, 25) == 25


def test_a_master_that_answers_nothing_is_asked_again_and_then_left() -> None:
    follow = EpochFollow(TinyLog([]), FILE_BYTES, EpochTable, lambda: SLAVE)
    follow.connected(0.0)
    assert follow.tick(4.0) == []
    assert isinstance(follow.tick(5.0)[0], Say)
    assert isinstance(follow.tick(21.0)[0], Reconnect)
