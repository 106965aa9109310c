"""A master's feed and a slave that follows, joined without a network: whatever the logs, they agree in the end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cometmq.base.errors import RemoteProtocolError
from cometmq.broker.replication.feed import Feed, FeedLimits, LogSpan
from cometmq.broker.replication.follow import (
    Append,
    CutTail,
    Follow,
    Instruction,
    Reconnect,
    Refuse,
    Report,
)
from cometmq.broker.replication.ha_wire import Piece

FILE_BYTES = 1000
ROTTEN = 255
"""The letter of a damaged record."""
LIMITS = FeedLimits(piece_bytes=7, heartbeat_seconds=5, silence_seconds=20)


class TinyLog:
    """Records are a letter and its repetitions: ``a3`` is three bytes. ``start`` must be a file's."""

    def __init__(self, records: list[bytes], start: int = 0) -> None:
        self.records = list(records)
        self.start = start
        self.judged_bytes = 1
        """So much of a record must have come to tell whether it is damaged."""

    @property
    def data(self) -> bytes:
        return b"".join(self.records)

    @property
    def end(self) -> int:
        return self.start + len(self.data)

    @property
    def span(self) -> LogSpan:
        return LogSpan(self.start, self.end, FILE_BYTES)

    def read(self, offset: int, size_bytes: int) -> bytes:
        return self.data[offset - self.start :][:size_bytes]

    def borders(self) -> list[int]:
        borders = [self.start]
        for record in self.records:
            borders.append(borders[-1] + len(record))
        return borders

    def record_from(self, offset: int) -> int:
        return next(border for border in self.borders() if border >= offset)

    def record_around(self, offset: int, low: int) -> int:
        return max(border for border in self.borders() if border <= offset)

    def is_sound(self, offset: int) -> bool:
        return self.data[offset - self.start] != ROTTEN

    def judge(self, offset: int, data: bytes | bytearray) -> bool | None:
        if len(data) < self.judged_bytes:
            return None
        return data[0] != ROTTEN

    def cut(self, offset: int) -> None:
        self.records = [
            record
            for border, record in zip(self.borders(), self.records, strict=False)
            if border < offset
        ]

    def append(self, offset: int, data: bytes | memoryview) -> None:
        if not self.records:
            self.start = offset
        assert offset == self.end
        self.records.append(bytes(data))


def _records(*sizes: int, mark: int = 0) -> list[bytes]:
    return [bytes([mark + number]) * size for number, size in enumerate(sizes)]


def _follow(master: TinyLog, slave: TinyLog, *, connections: int = 30) -> list[Instruction]:
    """Let the slave follow until it has everything. What it was told beside reports and appends."""
    follow = Follow(slave, FILE_BYTES)
    notable: list[Instruction] = []
    for _ in range(connections):
        feed = Feed(LIMITS, now=0)
        todo = follow.connected(0)
        now, heartbeats = 0.0, 0
        is_open = True
        last_words: Piece | None = None
        while is_open:
            for instruction in todo:
                match instruction:
                    case Report(offset):
                        try:
                            feed.reported(offset, master.span, now)
                        except RemoteProtocolError:
                            # As the link does: the end of the log is the last that is said.
                            last_words = Piece(master.span.end, b"")
                    case Append(offset, data):
                        slave.append(offset, data)
                    case CutTail(offset, _):
                        slave.cut(offset)
                        is_open = False
                    case Reconnect():
                        is_open = False
                    case Refuse():
                        return [*notable, instruction]
                if not isinstance(instruction, Report | Append):
                    notable.append(instruction)
            if not is_open:
                break
            if last_words is not None:
                todo, last_words = follow.came(last_words, now), None
                continue
            piece = feed.next_piece(master.span)
            if piece is not None:
                offset, size_bytes = piece
                feed.sent(size_bytes, now)
                todo = follow.came(Piece(offset, master.read(offset, size_bytes)), now)
                continue
            if heartbeats == 3:
                break
            heartbeats += 1
            now += 6
            offset_now = feed.heartbeat(master.span, now)
            todo = [] if offset_now is None else follow.came(Piece(offset_now, b""), now)
        if is_open and slave.data == master.data[slave.start - master.start :]:
            return notable
    raise AssertionError(f"not the same after {connections} connections: {notable}")


def test_an_empty_slave_gets_everything() -> None:
    master, slave = TinyLog(_records(3, 30, 5)), TinyLog([])
    assert _follow(master, slave) == []
    assert slave.data == master.data


def test_an_empty_slave_gets_what_the_master_still_has() -> None:
    master, slave = TinyLog(_records(3, 30, 5), start=3 * FILE_BYTES), TinyLog([])
    assert _follow(master, slave) == []
    assert (slave.start, slave.data) == (3 * FILE_BYTES, master.data)


def test_an_empty_slave_may_begin_with_the_last_file() -> None:
    limits = FeedLimits(piece_bytes=7, heartbeat_seconds=5, silence_seconds=20, from_last_file=True)
    feed = Feed(limits, now=0)
    feed.reported(0, LogSpan(1000, 3500, FILE_BYTES), now=0)
    assert feed.next_piece(LogSpan(1000, 3500, FILE_BYTES)) == (3000, 7)


def test_a_slave_goes_on_where_it_was() -> None:
    master, slave = TinyLog(_records(3, 30, 5, 8)), TinyLog(_records(3, 30))
    assert _follow(master, slave) == []


def test_a_piece_ends_with_its_file() -> None:
    feed = Feed(LIMITS, now=0)
    feed.reported(998, LogSpan(0, 1200, FILE_BYTES), now=0)
    assert feed.next_piece(LogSpan(0, 1200, FILE_BYTES)) == (998, 2)


def test_a_tail_that_the_master_does_not_have_is_cut() -> None:
    common = _records(10, 20)
    master = TinyLog([*common, *_records(5, 50, mark=100)])
    slave = TinyLog([*common, *_records(5, 7, 9, mark=200)])
    [cut] = _follow(master, slave)
    assert isinstance(cut, CutTail)
    assert cut.offset == 30


def test_a_longer_log_is_cut_where_the_masters_ends() -> None:
    common = _records(10, 20)
    master, slave = TinyLog(common), TinyLog([*common, *_records(5, 5, mark=200)])
    [cut] = _follow(master, slave)
    assert isinstance(cut, CutTail)
    assert cut.offset == 30
    assert "master's log ends at 30" in cut.reason


def test_it_looks_further_back_than_the_first_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cometmq.broker.replication.follow.LOOK_BACK_BYTES", 10)
    common = _records(*[20] * 40)
    master = TinyLog([*common, *_records(*[20] * 5, mark=100)])
    slave = TinyLog([*common, *_records(*[20] * 6, mark=200)])
    notable = _follow(master, slave)
    assert isinstance(notable[-1], CutTail)
    assert notable[-1].offset == 800
    assert all(isinstance(one, Reconnect) for one in notable[:-1])


def test_the_log_of_another_broker_is_refused() -> None:
    master, slave = TinyLog(_records(9, 9, mark=100)), TinyLog(_records(9, 9, mark=200))
    [refused] = _follow(master, slave)
    assert isinstance(refused, Refuse)
    assert "nothing of this log agrees" in refused.reason
    assert slave.data == b"".join(_records(9, 9, mark=200))


def test_a_master_that_deleted_what_comes_next_is_refused() -> None:
    master, slave = TinyLog(_records(9, 9), start=2 * FILE_BYTES), TinyLog(_records(9, 9))
    [refused] = _follow(master, slave)
    assert isinstance(refused, Refuse)
    assert "begins at 2000" in refused.reason


def test_a_silent_master_is_left_after_the_time_that_is_set() -> None:
    follow = Follow(TinyLog([]), FILE_BYTES, silence_seconds=60)
    follow.connected(0)
    assert not any(isinstance(one, Reconnect) for one in follow.tick(60))
    assert follow.tick(60.1) == [Reconnect("the master sent nothing for 60 s")]


def test_another_file_size_is_refused() -> None:
    follow = Follow(TinyLog([]), FILE_BYTES)
    follow.connected(0)
    [refused] = follow.came(Piece(1500, b"x"), 0)
    assert isinstance(refused, Refuse)
    assert "mappedFileSizeCommitLog" in refused.reason


@given(
    common=st.lists(st.integers(2, 40), max_size=20),
    ours=st.lists(st.integers(2, 40), max_size=10),
    theirs=st.lists(st.integers(2, 40), max_size=10),
)
def test_whatever_the_logs_they_agree_in_the_end_or_nothing_is_cut(
    common: list[int], ours: list[int], theirs: list[int]
) -> None:
    shared = _records(*common)
    master = TinyLog([*shared, *_records(*ours, mark=100)])
    slave = TinyLog([*shared, *_records(*theirs, mark=200)])
    before = slave.data
    notable = _follow(master, slave)
    if notable and isinstance(notable[-1], Refuse):
        assert not common
        assert slave.data == before
    else:
        assert slave.data == master.data
        assert all(one.offset >= sum(common) for one in notable if isinstance(one, CutTail))


def test_a_report_behind_the_log_is_refused() -> None:
    feed = Feed(LIMITS, now=0)
    with pytest.raises(RemoteProtocolError, match="behind the end of ours at 100"):
        feed.reported(101, LogSpan(0, 100, FILE_BYTES), now=0)


def test_a_report_of_what_was_never_sent_is_refused() -> None:
    feed = Feed(LIMITS, now=0)
    feed.reported(50, LogSpan(0, 100, FILE_BYTES), now=0)
    feed.sent(7, now=0)
    with pytest.raises(RemoteProtocolError, match="sent no more than up to 57"):
        feed.reported(58, LogSpan(0, 100, FILE_BYTES), now=0)


def test_silence_ends_a_connection_on_both_sides() -> None:
    feed = Feed(LIMITS, now=0)
    assert not feed.is_silent(20)
    assert feed.is_silent(20.1)
    follow = Follow(TinyLog(_records(9)), FILE_BYTES)
    follow.connected(0)
    assert follow.tick(5) == [Report(1)]
    assert isinstance(follow.tick(20.1)[0], Reconnect)


@pytest.mark.parametrize("behind", [(), (20,)])
def test_a_good_record_is_not_cut_for_a_damaged_one(behind: tuple[int, ...]) -> None:
    before, after = _records(3, 30, 5), _records(*behind, mark=100)
    slave = TinyLog([*before, b"good" * 3])
    slave.judged_bytes = 12
    master = TinyLog([*before, bytes([ROTTEN]) * 12, *after])
    *others, refusal = _follow(master, slave)
    assert others == []
    assert isinstance(refusal, Refuse)
    assert "the record at 38 is damaged at the master" in refusal.reason
    assert slave.data.endswith(b"good")


def test_a_record_that_ends_with_the_masters_log_before_it_can_be_judged_is_damaged() -> None:
    before = _records(3, 30, 5)
    slave = TinyLog([*before, b"good" * 3])
    slave.judged_bytes = 12
    master = TinyLog([*before, b"go?"])
    assert isinstance(_follow(master, slave)[-1], Refuse)
    assert slave.data.endswith(b"good")


def test_a_damaged_record_is_cut_for_a_good_one_or_another_damaged_one() -> None:
    for last in (b"good" * 3, bytes([ROTTEN, 1]) * 5):
        before = _records(3, 30, 5)
        slave, master = TinyLog([*before, bytes([ROTTEN]) * 12]), TinyLog([*before, last])
        assert [type(one) for one in _follow(master, slave)] == [CutTail]
        assert slave.data == master.data
