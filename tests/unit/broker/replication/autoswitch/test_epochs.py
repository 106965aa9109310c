"""Epochs of two logs: up to where they are the same, whatever happened to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cometmq.base.errors import CorruptFile, UsageError
from cometmq.broker.replication.autoswitch.epoch_file import (
    EpochFile,
    decode_epochs,
    encode_epochs,
)
from cometmq.broker.replication.autoswitch.epochs import Epoch, EpochTable, common_end
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

GOLDEN = Path(__file__).parents[4] / "golden" / "ha" / "epochFileCheckpoint"
PATH = "/store/epochFileCheckpoint"


def _table(*entries: tuple[int, int]) -> EpochTable:
    return EpochTable(Epoch(*one) for one in entries)


def test_rocketmqs_file_is_read_and_written_byte_by_byte() -> None:
    table = decode_epochs(GOLDEN.read_bytes())
    assert list(table) == [(1, 0), (2, 4160), (3, 45408)]
    assert encode_epochs(table) == GOLDEN.read_bytes()
    assert encode_epochs(_table((1, 0))).splitlines()[1] == b"1725254278"


@pytest.mark.parametrize(
    "content", [b"", b"x\n", b"2\n0\n1-0\n", b"1\n5\n1-0\n", b"1\n0\n1x0\n", b"2\n0\n2-0\n1-5\n"]
)
def test_a_damaged_file_is_noticed(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - what it says is of no interest
        decode_epochs(content)


def test_the_case_that_rocketmq_truncated() -> None:
    """As recorded in autoswitch-5.5.0-truncate.jsonl."""
    own = _table((1, 0), (2, 4160))
    master = _table((1, 0), (2, 4160), (3, 45408))
    assert common_end(own, 24237896, master, 45408) == 45408


@pytest.mark.parametrize(
    ("own", "own_end", "master", "master_end", "found"),
    [
        # It lacks some of what the master has, of the same reign or of later ones.
        ([(1, 0)], 50, [(1, 0)], 80, 50),
        ([(1, 0)], 50, [(1, 0), (2, 60)], 80, 50),
        # It has more than the master: of the same reign, or of one that the master never saw.
        ([(1, 0)], 90, [(1, 0)], 80, 80),
        ([(1, 0), (2, 60)], 90, [(1, 0), (3, 70)], 80, 60),
        ([(1, 0), (2, 60)], 90, [(1, 0), (3, 40)], 80, 40),
        # The same number with another beginning is another reign, which should not be.
        ([(1, 0), (2, 60)], 90, [(1, 0), (2, 50)], 80, 50),
        # Nothing but the empty beginning in common.
        ([(1, 0)], 90, [(2, 0)], 80, 0),
        # Nobody can tell.
        ([(1, 100)], 190, [(2, 0)], 80, None),
        ([(1, 0)], 190, [(2, 50)], 80, None),
    ],
)
def test_up_to_where_two_logs_are_the_same(
    own: list[tuple[int, int]],
    own_end: int,
    master: list[tuple[int, int]],
    master_end: int,
    found: int | None,
) -> None:
    assert common_end(_table(*own), own_end, _table(*master), master_end) == found


@given(st.data())
def test_elections_at_random(data: st.DataObject) -> None:
    """Each of three brokers copies some of the master's log; then one of them is elected, and appends."""
    logs: list[list[int]] = [[], [], []]
    tables = [EpochTable() for _ in logs]
    for epoch in range(1, data.draw(st.integers(1, 8)) + 1):
        master = data.draw(st.integers(0, 2))
        tables[master].begin(Epoch(epoch, len(logs[master])))
        logs[master] += [epoch] * data.draw(st.integers(0, 4))
        for slave in range(3):
            if slave == master or data.draw(st.booleans()):
                continue
            log, table = logs[slave], tables[slave]
            end = len(log)
            if len(table):
                found = common_end(table, end, tables[master], len(logs[master]))
                assert found is not None
                assert log[:found] == logs[master][:found]
                end = found
                table.cut(end)
            del log[end:]
            stop = data.draw(st.integers(end, len(logs[master])))
            for at in range(end, stop + 1):
                reign = tables[master].at(at)
                assert reign is not None
                table.begin(reign[0])
                if at < stop:
                    log.append(logs[master][at])


def test_a_reign_without_records_gives_way_to_the_next() -> None:
    table = _table((1, 0), (2, 50))
    assert table.begin(Epoch(4, 50))
    assert list(table) == [(1, 0), (4, 50)]
    assert not table.begin(Epoch(4, 50))
    for epoch in (Epoch(4, 60), Epoch(3, 60), Epoch(5, 40)):
        with pytest.raises(UsageError):
            table.begin(epoch)


def test_whose_a_byte_is() -> None:
    table = _table((1, 10), (3, 50))
    assert table.at(5) is None
    assert table.at(10) == (Epoch(1, 10), 50)
    assert table.at(49) == (Epoch(1, 10), 50)
    assert table.at(50) == (Epoch(3, 50), None)


def test_epochs_go_with_the_log() -> None:
    table = _table((1, 0), (2, 50), (3, 80))
    assert table.drop_before(50)
    assert list(table) == [(2, 50), (3, 80)]
    assert not table.fit(80)
    assert table.cut(80)
    assert list(table) == [(2, 50)]
    assert not table.drop_before(500)


def _file() -> tuple[EpochFile, FaultyFiles]:
    files = FaultyFiles(FakeClock(), seed=1)
    files.make_directory("/store")
    return EpochFile(PATH, files), files


def test_a_file_lasts_and_the_one_before_it_is_kept() -> None:
    file, files = _file()
    file.load(0, 0)
    file.begin(Epoch(1, 0))
    file.begin(Epoch(2, 70))
    again = EpochFile(PATH, files)
    again.load(0, 100)
    assert list(again.table) == [(1, 0), (2, 70)]
    # A power loss took the end of the log.
    again.load(0, 60)
    assert list(again.table) == [(1, 0)]
    files.replace(PATH, b"rubbish")
    again.load(0, 100)
    assert list(again.table) == [(1, 0)]
    files.replace(PATH + ".bak", b"rubbish")
    with pytest.raises(CorruptFile, match="Empty this store"):
        again.load(0, 100)
