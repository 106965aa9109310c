"""A slave becomes the master: its log ends at some byte, and its table of positions is of another moment."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest

from cometmq.broker.transaction.transaction_forms import copy_form, mark_form
from cometmq.testing.faulty_files import FaultyFiles

from .test_crashes import Model, answer_all, check, live

MakeRig = Callable[..., Any]
LOG = "/store/commitlog"
TABLE = "/store/config/consumerOffset.json"


def promote(rig: Any, log_end: int, table: bytes) -> None:
    """Go on with what a slave has: the log up to a byte, and a table; no queues, no index, no checkpoint."""
    file_bytes = int(rig.settings["mappedFileSizeCommitLog"])
    files = FaultyFiles(rig.clock)
    for directory in (LOG, "/store/config"):
        files.make_directory(directory)
    for name in rig.files.names(LOG):
        if int(name) > log_end + file_bytes:
            # RocketMQ makes the next file beforehand, no more.
            continue
        content = rig.files.read(f"{LOG}/{name}")[: max(log_end - int(name), 0)]
        files.replace(f"{LOG}/{name}", content.ljust(file_bytes, b"\0"))
    files.replace(TABLE, table)
    rig.files = files
    rig.open()


def settle(rig: Any) -> None:
    """Note how far it came, as a broker does every minute."""
    rig.store.flush()
    rig.transactions.save()


@pytest.mark.parametrize("seed", range(30))
def test_exactly_what_was_committed_is_delivered_once(make_rig: MakeRig, seed: int) -> None:
    chance = Random(seed)
    rig = make_rig(transactionCheckMax="1000")
    model = Model()
    for _ in range(4):
        ends, tables = [], []
        for _ in range(4):
            live(rig, chance, model)
            if chance.random() < 0.7:
                settle(rig)
            ends.append(rig.store.max_physical)
            tables.append(rig.offsets.encode())
        rig.store.flush()
        promote(rig, chance.randrange(ends[0], ends[-1] + 1), chance.choice(tables))
        check(rig, model)
    for _ in range(3):
        answer_all(rig, model)
    check(rig, model)
    survived = {half.body for half in rig.halves}
    wanted = {body for body, state in model.state.items() if state == "commit"}
    assert set(rig.delivered) == wanted & survived
    assert rig.transactions.open_count == 0
    assert len(wanted & survived) > 10, "the test does too little"


def test_positions_that_pass_over_a_decision_which_the_log_never_got(rig: Any) -> None:
    first, second = rig.half(b"a"), rig.half(b"b")
    undecided = rig.store.max_physical
    rig.commit(first)
    settle(rig)
    rig.store.flush()
    promote(rig, undecided, rig.offsets.encode())
    assert rig.transactions.open_count == 2
    # The log grows beyond where the master's ended, and the new master is killed before it noted anything else.
    for number in range(20):
        rig.roll_back(rig.half(b"%d" % number))
    rig.crash()
    assert {half.body for half in rig.round()} == {b"a", b"b"}
    assert rig.commit(first) is not None
    assert rig.commit(second) is not None
    assert rig.delivered == [b"a", b"b"]


def test_positions_of_rocketmq_that_are_ahead_of_the_queues(rig: Any) -> None:
    """It does not tell where its log ended, but it can tell of more half messages than there are."""
    rig.half(b"a")
    undecided = rig.store.max_physical
    rig.roll_back(rig.half(b"b"))
    rig.store.flush()
    table = b'{"offsetTable":{"RMQ_SYS_TRANS_HALF_TOPIC@CID_RMQ_SYS_TRANS":{0:2}}}'
    promote(rig, undecided, table)
    assert [half.body for half in rig.round()] == [b"a"]


@pytest.mark.parametrize("cut", range(1, 40, 13))
def test_the_log_ends_inside_a_mark(rig: Any, cut: int) -> None:
    place = rig.half(b"a")
    rig.commit(place)
    rig.store.flush()
    promote(rig, rig.store.max_physical - cut, b"{}")
    assert (rig.transactions.open_count, rig.delivered, rig.marks) == (0, [b"a"], [b"0"])
    assert rig.commit(place) is None


def test_a_decision_about_a_copy_of_rocketmqs_ends_the_transaction(rig: Any) -> None:
    """RocketMQ does not mark what its copies replace: with older positions all of them look open."""
    rig.half(b"a")
    for copied in (1, 2):
        rig.store.put(copy_of_rocketmq(rig, copied))
    rig.store.put(mark_form(1, 0))
    rig.half(b"b")
    rig.store.flush()
    promote(rig, rig.store.max_physical, b"{}")
    assert [half.body for half in rig.round()] == [b"b"]


def test_a_copy_of_rocketmqs_of_a_copy_of_ours_is_open(rig: Any) -> None:
    """The mark of a half message that a copy of ours replaced decides nothing."""
    place = rig.half(b"a")
    rig.round()
    rig.round()
    rig.store.put(copy_of_rocketmq(rig, 3))
    rig.store.flush()
    promote(rig, rig.store.max_physical, b"{}")
    assert (rig.marks, rig.transactions.open_count) == ([b"0", b"1"], 1)
    assert rig.commit(place) is not None
    assert rig.marks == [b"0", b"1", b"3"]
    # But one that RocketMQ adds, when the sender names the first half message, does.
    other = rig.half(b"b")
    rig.round(10)
    rig.store.put(mark_form(other.queue_offset, 0))
    rig.store.flush()
    promote(rig, rig.store.max_physical, b"{}")
    assert (rig.transactions.open_count, rig.delivered) == (0, [b"a"])


def test_who_is_no_master_neither_writes_nor_notes_anything(rig: Any) -> None:
    rig.commit(rig.half(b"a"))
    rig.store.flush()
    rig.is_master = False
    promote(rig, rig.store.max_physical - 1, b"{}")
    log_end, table = rig.store.max_physical, rig.offsets.encode()
    rig.advance(3600)
    assert (rig.store.max_physical, rig.offsets.encode()) == (log_end, table)
    rig.duties.resume()
    assert (rig.delivered, rig.marks) == ([b"a"], [b"0"])


def copy_of_rocketmq(rig: Any, check_count: int) -> Any:
    copy = copy_form(rig.halves[-1], 0, check_count)
    return msgspec.structs.replace(copy, prepared_transaction_offset=0)
