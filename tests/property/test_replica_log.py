"""A store that is fed another one's log in pieces becomes its copy: the same files, the same answers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cometmq.base.errors import DiskFull, NotMaster
from cometmq.model.address import pack_host
from cometmq.store.message_store import MessageStore
from cometmq.store.store_config import StoreConfig
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles, Outage
from cometmq.testing.store_scenario import KEYS, LOG_FILE_BYTES, QUEUES, make_message, small_store

HOST = pack_host("127.0.0.1", 10911)


class Pair:
    """A master's store and a slave's, each on a disk of its own."""

    def __init__(self) -> None:
        config: StoreConfig = small_store(1).config
        self.clock = FakeClock()
        self.config = config
        self.master_files = FaultyFiles(self.clock)
        self.slave_files = FaultyFiles(self.clock)
        self.master = self._open(self.master_files)
        self.slave = self._open(self.slave_files)

    def _open(self, files: FaultyFiles) -> MessageStore:
        store = MessageStore(self.config, store_host=HOST, files=files, clock=self.clock)
        store.load()
        return store

    def copy(self, sizes: list[int]) -> None:
        """Bring the slave up to the master, in pieces of these sizes, over and over."""
        replica = self.slave.replica
        number = 0
        while replica.end < self.master.max_physical:
            size_bytes = min(sizes[number % len(sizes)], self.master.max_physical - replica.end)
            number += 1
            offset = replica.end
            replica.append(offset, self.master.replica.read(offset, size_bytes))
            while replica.dispatch(count_max=3):
                pass

    def copy_shown_to(self, shown: list[int]) -> None:
        """Bring the log of the slave up to the master's, but dispatch up to these offsets only, one after another."""
        replica, master = self.slave.replica, self.master
        replica.append(
            replica.end, master.replica.read(replica.end, master.max_physical - replica.end)
        )
        for limit in shown:
            before = replica.dispatched
            while replica.dispatch(limit, count_max=3):
                pass
            assert before <= replica.dispatched <= max(before, limit)
            if replica.dispatched < min(limit, replica.end):
                # What comes next is a record that goes on behind the limit.
                assert replica.record_around(limit - 1, replica.dispatched) == replica.dispatched

    def reopen_slave(self) -> None:
        self.slave.close()
        self.slave = self._open(self.slave_files)

    def answers(self, store: MessageStore) -> list[object]:
        found: list[object] = []
        for topic, queue_id in QUEUES:
            end = store.max_offset(topic, queue_id)
            got = store.get(topic, queue_id, store.min_offset(topic, queue_id), 1000)
            found.append((end, b"".join(got.parts)))
            found += [b"".join(store.query(topic, key, 1000, 0, 1 << 62).parts) for key in KEYS]
        return found

    def assert_same(self) -> None:
        assert self.answers(self.slave) == self.answers(self.master)
        self.master.flush()
        self.slave.flush()
        for room in ("commitlog", "consumequeue"):
            assert _files(self.slave_files, room) == _files(self.master_files, room)


def _files(files: FaultyFiles, room: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    todo = [f"/store/{room}"]
    while todo:
        path = todo.pop()
        try:
            found[path] = files.read(path)
        except FileNotFoundError:
            todo += [f"{path}/{name}" for name in files.names(path)]
    return found


MESSAGES = st.lists(
    st.tuples(st.sampled_from(QUEUES), st.integers(0, 5000), st.integers(0, 600)), max_size=25
)
SIZES = st.lists(st.integers(1, 3000), min_size=1, max_size=5)


@settings(max_examples=60)
@given(rounds=st.lists(st.tuples(MESSAGES, SIZES, st.booleans()), min_size=1, max_size=4))
def test_a_replica_is_its_master_file_for_file(
    rounds: list[tuple[list[tuple[tuple[str, int], int, int]], list[int], bool]],
) -> None:
    pair = Pair()
    for messages, sizes, is_reopened in rounds:
        for queue, variety, body_bytes in messages:
            pair.master.put(make_message(queue, variety, body_bytes))
        pair.copy(sizes)
        pair.assert_same()
        if is_reopened:
            pair.reopen_slave()
            pair.assert_same()
    pair.master.close()
    pair.slave.close()


@settings(max_examples=40)
@given(MESSAGES.filter(bool), st.lists(st.integers(0, 8000), max_size=5).map(sorted))
def test_no_more_is_dispatched_than_is_to_be_shown(
    messages: list[tuple[tuple[str, int], int, int]], shown: list[int]
) -> None:
    pair = Pair()
    for queue, variety, body_bytes in messages:
        pair.master.put(make_message(queue, variety, body_bytes))
    pair.copy_shown_to(shown)
    pair.copy_shown_to([pair.master.max_physical])
    pair.assert_same()
    pair.master.close()
    pair.slave.close()


@settings(max_examples=40)
@given(MESSAGES.filter(bool), SIZES, st.integers(1, 600))
def test_a_promoted_replica_goes_on_behind_the_last_whole_record(
    messages: list[tuple[tuple[str, int], int, int]], sizes: list[int], lost_bytes: int
) -> None:
    pair = Pair()
    for queue, variety, body_bytes in messages:
        pair.master.put(make_message(queue, variety, body_bytes))
    pair.copy(sizes)
    behind = pair.master.max_physical
    pair.master.put(make_message(QUEUES[0], 1, 700))
    replica = pair.slave.replica
    whole = replica.end
    part = pair.master.replica.read(whole, pair.master.max_physical - whole)[:-lost_bytes]
    if part:
        replica.append(whole, part)
        replica.dispatch()
    replica.cut_partial()
    assert replica.end >= behind
    stored = pair.slave.put(make_message(QUEUES[1], 2, 100))
    got = pair.slave.get(*QUEUES[1], stored.queue_offset, 1)
    assert got.count == 1
    before = pair.answers(pair.slave)
    pair.reopen_slave()
    assert pair.answers(pair.slave) == before
    pair.master.close()
    pair.slave.close()


def test_a_replica_may_begin_where_its_masters_files_begin() -> None:
    pair = Pair()
    start = 3 * LOG_FILE_BYTES
    for number in range(40):
        pair.master.put(make_message(QUEUES[0], number, 300))
    replica = pair.slave.replica
    replica.append(start, pair.master.replica.read(start, pair.master.max_physical - start))
    while replica.dispatch():
        pass
    assert (replica.start, replica.end) == (start, pair.master.max_physical)
    first = pair.slave.min_offset(*QUEUES[0])
    assert first > 0
    assert pair.slave.get(*QUEUES[0], first, 100).parts
    assert pair.slave.max_offset(*QUEUES[0]) == pair.master.max_offset(*QUEUES[0])
    pair.master.close()
    pair.slave.close()


@settings(max_examples=60)
@given(
    before=MESSAGES.filter(bool),
    after=MESSAGES.filter(bool),
    again=MESSAGES,
    sizes=SIZES,
    is_running=st.booleans(),
)
def test_a_tail_that_was_cut_leaves_nothing_behind(
    before: list[tuple[tuple[str, int], int, int]],
    after: list[tuple[tuple[str, int], int, int]],
    again: list[tuple[tuple[str, int], int, int]],
    sizes: list[int],
    is_running: bool,
) -> None:
    pair = Pair()
    for message in before:
        pair.master.put(make_message(*message))
    pair.copy(sizes)
    end = pair.slave.max_physical
    # The slave was a master for a while, and its own master knows nothing of that.
    for message in after:
        pair.slave.put(make_message(*message))
    tail = pair.slave.replica.read(end, pair.slave.max_physical - end)
    pair.slave.follow()
    copy = pair.slave.cut_tail(end)
    assert pair.slave_files.read(copy) == tail
    assert pair.slave.max_physical == end
    with pytest.raises(NotMaster):
        pair.slave.put(make_message(*after[0]))
    for message in again:
        pair.master.put(make_message(*message))
    pair.copy(sizes)
    assert pair.answers(pair.slave) == pair.answers(pair.master)
    if is_running:
        pair.reopen_slave()
    pair.assert_same()
    pair.slave.lead()
    for message in again:
        pair.master.put(make_message(*message))
        pair.slave.put(make_message(*message))
    assert pair.answers(pair.slave) == pair.answers(pair.master)
    pair.master.close()
    pair.slave.close()


def test_a_promoted_replica_starts_again_after_a_kill() -> None:
    """Its master failed in the middle of a record, of which the first part is on disk."""
    pair = Pair()
    pair.master.put(make_message(QUEUES[0], 1, 300))
    pair.copy([100])
    pair.master.put(make_message(QUEUES[0], 2, 700))
    replica = pair.slave.replica
    whole = replica.end
    pair.slave.follow()
    replica.append(whole, pair.master.replica.read(whole, 200))
    pair.slave.flush()
    pair.slave.lead()
    assert pair.slave.max_physical == whole
    pair.slave_files.crash_now()
    pair.slave_files.restart(Outage.PROCESS_KILL)
    pair.slave = pair._open(pair.slave_files)
    assert pair.slave.max_physical == whole
    pair.master.close()
    pair.slave.close()


def test_a_store_that_a_cut_left_closed_can_be_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full() -> None:
        raise DiskFull("no space")

    pair = Pair()
    pair.master.put(make_message(QUEUES[0], 1, 300))
    pair.copy([100])
    end = pair.slave.max_physical
    pair.slave.put(make_message(QUEUES[0], 2, 700))
    pair.slave.follow()
    with monkeypatch.context() as patch:
        patch.setattr(pair.slave, "_recover", full)
        with pytest.raises(DiskFull):
            pair.slave.cut_tail(end)
    pair.slave.open_again()
    assert pair.slave.max_physical == end
    pair.master.put(make_message(QUEUES[0], 3, 300))
    pair.copy([100])
    pair.assert_same()
    pair.master.close()
    pair.slave.close()
