from __future__ import annotations

import pytest

from cometmq.broker.sink.sink_record import Opened, SinkRecord
from cometmq.model.messages.sink_mark import SinkMark
from cometmq.protocol.refusal import Refused
from cometmq.store.meta.sink_lanes import LaneRow


def mark(batch: int, partition: int = 0, sink: str = "s") -> SinkMark:
    return SinkMark(sink, partition, batch)


def opened(
    record: SinkRecord, batch: int, writer: str, log_end: int, *, again: bool = False
) -> int:
    return record.open(mark(batch), writer, is_again=again, log_end=log_end).first_offset


def test_a_new_batch_has_nothing_stored_and_a_repeated_one_from_its_beginning() -> None:
    record = SinkRecord()
    assert opened(record, 0, "w0", 100) == 100
    assert opened(record, 0, "w1", 250) == 100
    assert opened(record, 1, "w2", 300) == 300
    assert opened(record, 1, "w3", 400) == 300


def test_only_the_last_writer_of_a_lane_may_write() -> None:
    record = SinkRecord()
    opened(record, 0, "old", 0)
    record.admit("old")
    opened(record, 0, "new", 0)
    record.admit("new")
    with pytest.raises(Refused, match="no lane of a sink is open for this writer"):
        record.admit("old")
    record.open(mark(0, partition=1), "other", is_again=False, log_end=0)
    record.admit("new")


def test_a_writer_that_was_replaced_does_not_take_the_lane_back() -> None:
    record = SinkRecord()
    opened(record, 0, "old", 0)
    opened(record, 0, "new", 0)
    with pytest.raises(Refused, match="written by a later attempt") as refused:
        opened(record, 0, "old", 0, again=True)
    assert refused.value.code == 604
    record.admit("new")
    assert opened(record, 0, "new", 50, again=True) == 0
    record.close_writers()
    assert opened(record, 0, "old", 50, again=True) == 0, "after a pause whoever comes first"


def test_an_attempt_replaces_its_own_connection() -> None:
    record = SinkRecord()
    opened(record, 0, "a.0", 0)
    opened(record, 0, "a.1", 0, again=True)
    with pytest.raises(Refused):
        record.admit("a.0")
    with pytest.raises(Refused, match="written by a later attempt"):
        opened(record, 0, "b.0", 0, again=True)
    opened(record, 0, "b.0", 0)
    with pytest.raises(Refused, match="written by a later attempt"):
        opened(record, 0, "a.2", 0, again=True)


def test_a_sink_never_goes_back() -> None:
    record = SinkRecord()
    opened(record, 5, "w", 0)
    with pytest.raises(Refused, match="has written batch 5 already and cannot go back to batch 4"):
        opened(record, 4, "v", 0)
    record.admit("w")


def test_what_the_log_says_counts_as_what_was_opened() -> None:
    record = SinkRecord()
    record.load([LaneRow("s", 0, 3, 1000)])
    record.note(mark(3), 1500)
    record.note(mark(4), 2000)
    record.note(mark(4), 2100)
    record.note(mark(2), 2200)
    record.note(mark(9, partition=1), 2300)
    assert list(record.rows()) == [LaneRow("s", 0, 4, 2000), LaneRow("s", 1, 9, 2300)]
    assert opened(record, 4, "w", 5000) == 2000


def test_rows_that_the_log_has_lost_are_not_looked_for() -> None:
    record = SinkRecord()
    record.load([LaneRow("s", 0, 3, 1000)])
    assert opened(record, 3, "w", 600) == 600


def test_the_least_recently_opened_lane_is_forgotten_first() -> None:
    record = SinkRecord(lanes_max=2)
    record.open(mark(1, sink="a"), "wa", is_again=False, log_end=10)
    record.open(mark(1, sink="b"), "wb", is_again=False, log_end=20)
    record.open(mark(1, sink="a"), "wa", is_again=True, log_end=30)
    record.open(mark(1, sink="c"), "wc", is_again=False, log_end=40)
    assert [row.sink for row in record.rows()] == ["a", "c"]
    with pytest.raises(Refused):
        record.admit("wb")


def test_a_closed_sink_is_forgotten() -> None:
    record = SinkRecord()
    opened(record, 1, "w", 0)
    record.open(mark(1, sink="t"), "x", is_again=False, log_end=0)
    assert record.close("s") == 1
    assert record.close("s") == 0
    assert len(record) == 1
    with pytest.raises(Refused):
        record.admit("w")
    record.admit("x")


class TestRuns:
    """A batch that is begun anew may be cut into other partitions than before."""

    def open(
        self,
        record: SinkRecord,
        partition: int,
        run: str,
        *,
        again: bool = False,
        checked: bool = False,
        end: int = 900,
    ) -> Opened:
        return record.open(
            mark(4, partition),
            f"{run}-{partition}",
            is_again=again,
            log_end=end,
            run=run,
            is_checked=checked,
        )

    def test_the_first_run_has_nothing_to_check(self) -> None:
        record = SinkRecord()
        for partition in (0, 1, 0):
            opened = self.open(record, partition, "r")
            assert (opened.is_checked, opened.unchecked) == (True, ())

    def test_another_run_checks_each_lane_and_hears_of_the_others(self) -> None:
        record = SinkRecord()
        for partition in range(3):
            self.open(record, partition, "r1", end=100 * partition)
        opened = self.open(record, 0, "r2")
        assert opened == Opened(
            first_offset=0, batch_offset=0, is_checked=False, unchecked=(1, 2), is_other_run=True
        )
        opened = self.open(record, 0, "r2", again=True, checked=True)
        assert (opened.is_checked, opened.unchecked) == (True, (1, 2))
        opened = self.open(record, 1, "r2")
        assert (opened.is_checked, opened.unchecked) == (False, (2,))
        # One that is new has nothing of its own to check.
        opened = self.open(record, 7, "r2")
        assert (opened.is_checked, opened.unchecked) == (True, (1, 2))
        for partition in (1, 2):
            self.open(record, partition, "r2", again=True, checked=True)
        # An attempt that is repeated in the same run is not checked again.
        opened = self.open(record, 0, "r2")
        assert (opened.is_checked, opened.unchecked) == (True, ())

    def test_an_attempt_that_ended_before_its_check_is_checked_when_repeated(self) -> None:
        record = SinkRecord()
        self.open(record, 0, "r1")
        self.open(record, 0, "r2")
        assert not self.open(record, 0, "r2").is_checked

    def test_another_run_ends_the_writers_of_the_one_before(self) -> None:
        record = SinkRecord()
        self.open(record, 0, "r1")
        self.open(record, 1, "r1")
        self.open(record, 0, "r2")
        with pytest.raises(Refused, match="no lane of a sink is open"):
            record.admit("r1-1")
        with pytest.raises(Refused, match="is written by a later attempt"):
            self.open(record, 1, "r1", again=True)
        record.admit("r2-0")

    def test_a_writer_of_the_run_before_does_not_take_its_lane_back(self) -> None:
        record = SinkRecord()
        self.open(record, 0, "r1")
        self.open(record, 0, "r2")
        record.close_writers()
        with pytest.raises(Refused, match="is written by a later attempt"):
            self.open(record, 0, "r1", again=True)
        self.open(record, 0, "r2", again=True)

    def test_other_batches_and_sinks_do_not_count(self) -> None:
        record = SinkRecord()
        record.open(mark(3, 0), "a", is_again=False, log_end=0, run="r1")
        record.open(mark(4, 1, "t"), "b", is_again=False, log_end=0, run="r1")
        assert self.open(record, 1, "r2").unchecked == ()
        record.admit("b")

    def test_a_restart_of_the_broker_keeps_what_was_checked(self) -> None:
        before = SinkRecord()
        for partition in range(3):
            self.open(before, partition, "r1")
        self.open(before, 0, "r2")
        self.open(before, 1, "r2")
        self.open(before, 1, "r2", again=True, checked=True)
        record = SinkRecord()
        record.load(before.rows())
        opened = self.open(record, 7, "r2")
        assert (opened.is_checked, opened.unchecked, opened.is_other_run) == (True, (2, 0), True)
        assert self.open(record, 1, "r2").is_checked

    def test_after_a_kill_of_the_broker_nobody_knows_the_run(self) -> None:
        record = SinkRecord()
        record.load([LaneRow("s", 0, 4, 10), LaneRow("s", 1, 4, 20), LaneRow("s", 2, 3, 30)])
        opened = self.open(record, 0, "r", again=True, checked=True)
        assert opened == Opened(
            first_offset=10, batch_offset=10, is_checked=True, unchecked=(1,), is_other_run=False
        )

    def test_some_lanes_are_named(self) -> None:
        record = SinkRecord()
        for partition in range(30):
            self.open(record, partition, "r1")
        assert self.open(record, 0, "r2").unchecked == tuple(range(1, 11))

    def test_a_lane_that_is_forgotten_is_not_waited_for(self) -> None:
        record = SinkRecord(lanes_max=2)
        self.open(record, 0, "r1")
        self.open(record, 1, "r1")
        assert self.open(record, 1, "r2").unchecked == (0,)
        record.open(mark(1, sink="t"), "t", is_again=False, log_end=0, run="r")
        assert self.open(record, 1, "r2", again=True).unchecked == ()

    def test_a_sink_that_is_closed_has_no_run(self) -> None:
        record = SinkRecord()
        self.open(record, 0, "r1")
        record.close("s")
        assert self.open(record, 0, "r2", again=True).is_checked
