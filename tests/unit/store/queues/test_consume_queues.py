from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from cometmq.base.disk import SystemFiles
from cometmq.base.errors import CorruptFile, DiskFull
from cometmq.base.ports import File
from cometmq.store.files.queue_entry import ENTRY, FILLER
from cometmq.store.open_files import OpenFiles
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.queues.consume_queues import WAITING_PER_QUEUE, ConsumeQueues, Written
from cometmq.store.store_config import ConsumeQueueConfig
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

REACHED = Written(1, 1, 1, -1)


@pytest.fixture
def queues(tmp_path: Path) -> ConsumeQueues:
    config = ConsumeQueueConfig(file_bytes=100, open_files_max=8)
    return ConsumeQueues(str(tmp_path / "consumequeue"), config, SystemFiles())


def append(queues: ConsumeQueues, queue: ConsumeQueue, count: int) -> None:
    for _ in range(count):
        number = queue.next_offset
        queues.append(queue, number * 1000, 10, number)


def offsets(data: bytes) -> list[int]:
    return [entry[2] for entry in ENTRY.iter_unpack(data)]


def test_entries_are_read_from_memory_files_and_across_both(queues: ConsumeQueues) -> None:
    queue = queues.get_or_create("T", 0)
    append(queues, queue, 7)
    assert offsets(queue.read(0, 100, queues.open_files)) == list(range(7))
    queues.write_out(REACHED)
    assert queue.waiting is None
    append(queues, queue, 6)
    for first in range(13):
        for count in (1, 3, 20):
            found = offsets(queue.read(first, count, queues.open_files))
            assert found == list(range(first, min(first + count, 13)))
    assert queue.read(13, 1, queues.open_files) == b""
    assert queues.written == REACHED
    queues.close()


def test_a_queue_starts_in_the_middle_with_fillers_in_its_first_file_only(
    queues: ConsumeQueues,
) -> None:
    queue = queues.get_or_create("T", 0)
    queue.next_offset = 13
    append(queues, queue, 3)
    assert queue.read(0, 100, queues.open_files) == b""
    queues.write_out(REACHED)
    directory = Path(queue.directory)
    assert sorted(path.name for path in directory.iterdir()) == [f"{200:020d}", f"{300:020d}"]
    assert (directory / f"{200:020d}").read_bytes()[:60] == FILLER * 3
    assert queue.min_offset(0, queues.open_files) == 13
    queues.close()


def test_the_minimum_follows_the_log(queues: ConsumeQueues) -> None:
    queue = queues.get_or_create("T", 0)
    append(queues, queue, 12)
    queues.write_out(REACHED)
    append(queues, queue, 3)
    starts = (0, 1, 1000, 1001, 4500, 13_000, 20_000)
    found = [queue.min_offset(start, queues.open_files) for start in starts]
    assert found == [0, 1, 1, 2, 5, 13, 15]
    queues.close()


def test_files_whose_records_are_gone_expire_but_never_the_last(queues: ConsumeQueues) -> None:
    queue = queues.get_or_create("T", 0)
    append(queues, queue, 12)
    queues.write_out(REACHED)
    assert queues.expired_files(queue, 4000) == []
    assert queues.expired_files(queue, 4001) == [queue.path(0)]
    assert queues.expired_files(queue, 99_000) == [queue.path(100)]
    assert queue.first_start == 200
    queues.close()


def test_no_more_files_are_open_than_allowed(queues: ConsumeQueues) -> None:
    for queue_id in range(30):
        append(queues, queues.get_or_create("T", queue_id), 6)
    queues.write_out(REACHED)
    assert len(queues.open_files) <= 8
    for queue in queues.all():
        assert offsets(queue.read(0, 6, queues.open_files)) == list(range(6))
    assert len(queues.open_files) <= 8
    queues.close()


def test_a_truncated_queue_holds_nothing_behind_its_end(queues: ConsumeQueues) -> None:
    queue = queues.get_or_create("T", 0)
    append(queues, queue, 12)
    queues.write_out(REACHED)
    queues.truncate(queue, 3, 200)
    directory = Path(queue.directory)
    assert [path.name for path in directory.iterdir()] == [f"{0:020d}"]
    assert (directory / f"{0:020d}").read_bytes()[60:] == bytes(40)
    append(queues, queue, 1)
    assert offsets(queue.read(0, 9, queues.open_files)) == [0, 1, 2, 3]
    queues.write_out(REACHED)
    queues.truncate(queue, 0, 0)
    assert list(directory.iterdir()) == []
    queues.close()


def test_a_deleted_topic_takes_its_waiting_entries_along(queues: ConsumeQueues) -> None:
    append(queues, queues.get_or_create("T", 0), 2)
    append(queues, queues.get_or_create("O", 0), 3)
    assert queues.delete_topic("T") == 1
    assert queues.waiting_count == 3
    queues.write_out(REACHED)
    assert not (Path(queues.directory) / "T").exists()
    queues.close()


def test_a_round_counts_as_written_when_its_last_queue_is(queues: ConsumeQueues) -> None:
    first, second = queues.get_or_create("T", 0), queues.get_or_create("T", 1)
    append(queues, first, 2)
    append(queues, second, 3)
    before = queues.written
    queues.begin_round(REACHED)
    queues.write_part(1)
    assert queues.written == before
    assert queues.is_write_due
    # One of them is written already, one takes the new entry along.
    append(queues, first, 1)
    append(queues, second, 1)
    queues.write_part(1)
    assert queues.written == REACHED
    assert queues.waiting_count == 1
    for queue, count in ((first, 3), (second, 4)):
        assert offsets(queue.read(0, 9, queues.open_files)) == list(range(count))
    queues.write_out(REACHED)
    assert queues.waiting_count == 0
    queues.close()


def test_a_topic_deleted_in_the_middle_of_a_round(queues: ConsumeQueues) -> None:
    for topic in "ABC":
        append(queues, queues.get_or_create(topic, 0), 2)
    queues.begin_round(REACHED)
    queues.write_part(1)
    append(queues, queues.get_or_create("C", 0), 1)
    for topic in "ABC":
        queues.delete_topic(topic)
    assert queues.waiting_count == 0
    queues.write_part(1)
    assert queues.written == REACHED
    queues.close()


def test_many_queues_wait_for_several_entries_each(queues: ConsumeQueues) -> None:
    some = [queues.get_or_create("T", queue_id) for queue_id in range(1000)]
    for queue in some:
        append(queues, queue, 1)
        if queues.is_write_due:
            queues.write_out(REACHED)
    for _ in range(WAITING_PER_QUEUE - 1):
        assert not queues.is_write_due
        for queue in some:
            append(queues, queue, 1)
    append(queues, some[0], 1000)
    assert queues.is_write_due
    queues.close()


def test_a_full_disk_keeps_entries_waiting_in_order() -> None:
    files = FaultyFiles(FakeClock(), total_bytes=1 << 20)
    queues = ConsumeQueues("/q", ConsumeQueueConfig(file_bytes=100), files)
    queue = queues.get_or_create("T", 0)
    queue.next_offset = 2
    append(queues, queue, 20)
    for free in (0, 4096, 8192):
        files.set_free(free)
        with pytest.raises(DiskFull):
            queues.write_out(REACHED)
        assert offsets(queue.read(2, 99, queues.open_files)) == list(range(2, 22))
    assert queues.waiting_count == 20
    files.set_free(1 << 20)
    queues.write_out(REACHED)
    assert queues.waiting_count == 0
    assert offsets(queue.read(2, 99, queues.open_files)) == list(range(2, 22))


def test_what_is_written_while_the_flusher_syncs_is_synced_next_time() -> None:
    files = FaultyFiles(FakeClock())
    queues = ConsumeQueues("/q", ConsumeQueueConfig(file_bytes=100), files)
    queue = queues.get_or_create("T", 0)
    for _ in range(3):
        append(queues, queue, 1)
        queues.write_out(REACHED)
        assert queues.sync() == REACHED
    synced = [call for call in files.last_calls if call.startswith("sync /q/T/0/")]
    assert len(synced) == 3
    calls = files.call_count
    queues.sync()
    assert files.call_count == calls


def test_a_file_without_length_goes_after_an_unclean_stop_only(queues: ConsumeQueues) -> None:
    queue = queues.get_or_create("T", 0)
    append(queues, queue, 12)
    queues.write_out(REACHED)
    Path(queue.path(100)).write_bytes(b"")
    queues.close()
    with pytest.raises(CorruptFile, match="0 bytes long"):
        queues.load(is_clean=True)
    queues.table.clear()
    ((loaded, last_start),) = queues.load(is_clean=False)
    assert (loaded.first_start, last_start) == (0, 0)
    assert [path.name for path in Path(queue.directory).iterdir()] == [f"{0:020d}"]


def test_the_least_recently_used_file_is_the_one_closed(tmp_path: Path) -> None:
    open_files = OpenFiles(SystemFiles(), 2)
    paths = [str(tmp_path / name) for name in "abc"]
    first = open_files.create(paths[0], 10)
    second = open_files.create(paths[1], 10)
    assert open_files.get(paths[0]) is first
    open_files.create(paths[2], 10)
    assert open_files.get(paths[0]) is first
    with pytest.raises(OSError, match="Bad file descriptor"):
        second.read_at(0, 1)
    open_files.close()


def test_a_number_that_is_kept_for_others_is_given_back_for_one_of_its_own(tmp_path: Path) -> None:
    files = SystemFiles()
    paths = [str(tmp_path / name) for name in "abcd"]
    # Whatever else this process has open: the next two numbers may be taken, and no more.
    probes = [os.dup(0) for _ in range(3)]
    for probe in probes:
        os.close(probe)
    open_files = OpenFiles(files, 10, sorted(probes)[2])
    try:
        for path in paths:
            assert open_files.create(path, 10).descriptor < sorted(probes)[2]
        assert len(open_files) == 2
        for path in paths:
            assert open_files.get(path).descriptor < sorted(probes)[2]
        # With none of its own to give back it takes what there is.
        barred = OpenFiles(files, 10, 0)
        for path in paths:
            barred.get(path).write_at(0, b"x")
            assert len(barred) == 1
        barred.close()
    finally:
        open_files.close()


def test_with_no_descriptor_left_another_file_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SystemFiles()
    open_files = OpenFiles(files, 10)
    paths = [str(tmp_path / name) for name in "abc"]
    for path in paths:
        open_files.create(path, 10)
    open_files.drop(paths[2])
    real, failures = files.open, [errno.EMFILE, errno.ENFILE]

    def scarce(path: str, *, mapped: bool, writable: bool = True) -> File:
        if failures:
            raise OSError(failures.pop(), "scarce")
        return real(path, mapped=mapped, writable=writable)

    monkeypatch.setattr(files, "open", scarce)
    assert open_files.get(paths[2]).path == paths[2]
    assert len(open_files) == 1
    failures.append(errno.EACCES)
    with pytest.raises(OSError, match="scarce"):
        open_files.get(paths[0])
    open_files.close()
