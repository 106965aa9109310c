"""Damage and crashes on a store of several small files: what is kept, what is cut, what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cometmq.base.errors import CorruptFile
from cometmq.model.messages.record import decode_record, decode_records
from cometmq.store.log.new_messages import NewMessage, Stored
from cometmq.store.message_store import MessageStore
from cometmq.store.recovery.checkpoint import OWN_AT

Lab = Any
Make = Callable[..., NewMessage]
COUNT = 40


def fill(
    lab: Lab, message: Make, *, close: bool = True, flush_at: int | None = None
) -> list[Stored]:
    """Messages 0 … 39 in turns into two queues of T, over several log and queue files.

    Args:
        close: stop cleanly at the end.
        flush_at: flush only once, before this message, and do not stop.
    """
    store = lab.open()
    stored = []
    for number in range(COUNT):
        if number == flush_at:
            store.flush()
        key = f"k{number}"
        properties = f"KEYS\x01{key}\x02".encode()
        body = b"%03d" % number + b"." * 300
        stored.append(
            store.put(message(body, queue_id=number % 2, properties=properties, keys=[key]))
        )
        lab.clock.ms += 100
    if flush_at is None:
        store.flush()
        if close:
            store.close()
    return stored


def numbers(store: MessageStore) -> list[int]:
    """Every message of T in the order of storing, with every claim of its queue checked."""
    found: list[tuple[int, int]] = []
    for queue_id in store.queue_ids("T"):
        offset = store.min_offset("T", queue_id)
        while offset < store.max_offset("T", queue_id):
            result = store.get("T", queue_id, offset, 32)
            assert result.status == "FOUND" or store.damages.found_count, result
            assert result.next_offset > offset
            for part in result.parts:
                for record in decode_records(part):
                    assert record.queue_id == queue_id
                    assert record.queue_offset == offset or store.damages.found_count
                    found.append((record.physical_offset, int(record.body[:3])))
                    offset = record.queue_offset + 1
            offset = result.next_offset
    return [number for _, number in sorted(found)]


def log_file(lab: Lab, offset: int) -> Path:
    path: Path = lab.root / "commitlog" / f"{offset // 4096 * 4096:020d}"
    return path


def damage(lab: Lab, offset: int, data: bytes) -> None:
    path = log_file(lab, offset)
    raw = bytearray(path.read_bytes())
    raw[offset % 4096 : offset % 4096 + len(data)] = data
    path.write_bytes(raw)


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_everything_is_there_after_a_clean_stop(lab: Lab, message: Make) -> None:
    stored = fill(lab, message)
    before = tree(lab.root)
    store = lab.open()
    assert numbers(store) == list(range(COUNT))
    assert store.max_physical == stored[-1].end_offset
    assert store.put(message(queue_id=1)).queue_offset == COUNT // 2
    assert store.watermarks.flushed.value == stored[-1].end_offset
    store.close()
    lab.crash("copy").open().close()
    assert before.keys() <= tree(lab.root).keys()


def test_opening_and_closing_changes_no_message_file(lab: Lab, message: Make) -> None:
    fill(lab, message)
    before = tree(lab.root)
    lab.open().close()
    assert tree(lab.root) == before


def test_everything_is_there_after_a_kill_again_and_again(lab: Lab, message: Make) -> None:
    fill(lab, message, close=False)
    expected = list(range(COUNT))
    for number in range(COUNT, COUNT + 20):
        lab = lab.crash(f"{number}")
        store = lab.open()
        assert numbers(store) == expected
        for _ in range(3):
            store.put(message(b"%03d" % number + b"." * 500))
            expected.append(number)


def test_what_was_never_written_out_is_rebuilt_from_the_log(lab: Lab, message: Make) -> None:
    store = lab.open()
    for number in range(7):
        store.put(message(b"%03d" % number, keys=["k"], properties=b"KEYS\x01k\x02"))
    assert not (lab.root / "consumequeue").exists()
    crashed = lab.crash().open()
    assert numbers(crashed) == list(range(7))
    assert len(crashed.query("T", "k", 32, 0, 1 << 62).parts) == 7


def test_a_flipped_body_byte_of_the_last_record_that_was_not_flushed_drops_that_record(
    lab: Lab, message: Make, caplog: pytest.LogCaptureFixture
) -> None:
    last = fill(lab, message, flush_at=COUNT - 2)[-1]
    lab = lab.crash()
    damage(lab, last.physical_offset + 100, b"!")
    store = lab.open()
    assert numbers(store) == list(range(COUNT - 1))
    assert store.max_physical == last.physical_offset
    assert "log tail cut" in caplog.text
    assert f"offset={last.physical_offset}" in caplog.text
    assert store.put(message(b"040", queue_id=1)).queue_offset == last.queue_offset
    assert len(numbers(store)) == COUNT


def all_but(*missing: int) -> list[int]:
    return [number for number in range(COUNT) if number not in missing]


@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_record_with_sound_ones_behind_it_is_passed_over(
    lab: Lab, message: Make, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    stored = fill(lab, message, close=clean)
    lab = lab.crash()
    middle = stored[COUNT - 5]
    damage(lab, middle.physical_offset + 100, b"!")
    before = log_file(lab, middle.physical_offset).read_bytes()
    store = lab.open()
    assert f"{log_file(lab, middle.physical_offset).name} position=" in caplog.text
    assert f"offset={middle.physical_offset} topic=T" in caplog.text
    assert store.max_physical == stored[-1].end_offset
    assert numbers(store) == all_but(COUNT - 5)
    assert store.put(message(b"040", queue_id=1)).queue_offset == stored[-1].queue_offset + 1
    store.close()
    raw = log_file(lab, middle.physical_offset).read_bytes()
    at = middle.physical_offset % 4096
    assert raw[at : at + middle.size_bytes] == before[at : at + middle.size_bytes]
    assert numbers(lab.open()) == [*all_but(COUNT - 5), COUNT]


def test_a_damaged_log_is_cut_if_the_operator_says_so(lab: Lab, message: Make) -> None:
    middle = fill(lab, message)[COUNT - 5]
    damage(lab, middle.physical_offset + 100, b"!")
    lab.change(log={"recover_by_truncating": True})
    assert numbers(lab.open()) == list(range(COUNT - 5))


def test_many_damaged_records_are_refused_and_nothing_changed(
    lab: Lab, message: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cometmq.store.recovery.log_recovery.DAMAGED_MAX", 3)
    stored = fill(lab, message)
    for number in (20, 24, 28, 32):
        damage(lab, stored[number].physical_offset + 100, b"!")
    before = tree(lab.root)
    last = stored[32]
    with pytest.raises(CorruptFile, match=log_file(lab, last.physical_offset).name) as refusal:
        lab.open()
    text = str(refusal.value)
    assert f"offset {last.physical_offset}" in text
    assert f"byte {last.physical_offset % 4096}" in text
    assert "recoverByTruncating" in text
    assert tree(lab.root) == before


@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_last_record_that_was_flushed_is_passed_over(
    lab: Lab, message: Make, clean: bool
) -> None:
    last = fill(lab, message, close=clean)[-1]
    lab = lab.crash()
    damage(lab, last.physical_offset + 100, b"!")
    store = lab.open()
    assert store.max_physical == last.end_offset
    assert numbers(store) == all_but(COUNT - 1)


@pytest.mark.parametrize("clean", [True, False])
def test_a_last_record_that_was_flushed_and_is_none_any_more_is_refused(
    lab: Lab, message: Make, clean: bool
) -> None:
    last = fill(lab, message, close=clean)[-1]
    lab = lab.crash()
    damage(lab, last.physical_offset + 4, b"!")
    before = tree(lab.root)
    with pytest.raises(CorruptFile, match="recoverByTruncating") as refusal:
        lab.open()
    assert f"on disk up to offset {last.end_offset}" in str(refusal.value)
    assert tree(lab.root) == before
    lab.change(log={"recover_by_truncating": True})
    assert numbers(lab.open()) == list(range(COUNT - 1))


@pytest.mark.parametrize("flush_at", [0, 10])
@pytest.mark.parametrize("at", [0, 3, 8, 30, 100, 300])
def test_damage_behind_the_checkpoint_is_no_torn_tail_after_a_kill(
    lab: Lab, message: Make, flush_at: int, at: int
) -> None:
    """A killed process has lost nothing of what it wrote: sound records behind a bad one mean damage."""
    middle = fill(lab, message, flush_at=flush_at)[20]
    lab = lab.crash()
    position = middle.physical_offset + at
    damage(lab, position, bytes([log_file(lab, position).read_bytes()[position % 4096] ^ 0x10]))
    assert numbers(lab.open()) == all_but(20)


@pytest.mark.parametrize("flush_at", [0, 10])
def test_damage_behind_the_checkpoint_is_no_torn_tail_after_a_power_loss(
    lab: Lab, message: Make, flush_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a power loss takes are whole sectors: a wrong byte between good ones is not lost, but altered."""
    middle = fill(lab, message, flush_at=flush_at)[20]
    lab = lab.crash()
    damage(lab, middle.physical_offset + 100, b"!")
    monkeypatch.setattr(lab.files, "boot_id", lambda: "another")
    assert numbers(lab.open()) == all_but(20)


def test_a_sector_that_a_power_loss_took_is_a_torn_tail(
    lab: Lab, message: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = fill(lab, message, flush_at=10)
    lab = lab.crash()
    lost_at = (stored[20].physical_offset // 512 + 1) * 512
    damage(lab, lost_at, bytes(512))
    monkeypatch.setattr(lab.files, "boot_id", lambda: "another")
    # The sector has the end of one record, or two, and the start of the next.
    assert len(numbers(lab.open())) in (20, 21)


def test_the_end_of_a_sector_that_a_power_loss_took_is_a_torn_tail(
    lab: Lab, message: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a record of a replica came and was synced, and then the other half was lost."""
    store = lab.open()
    store.put(message())
    store.flush()
    torn = store.put(message(b"." * 1000))
    store.put(message())
    lab = lab.crash()
    sector_end = (torn.physical_offset // 512 + 2) * 512
    damage(lab, sector_end - 200, bytes(200))
    monkeypatch.setattr(lab.files, "boot_id", lambda: "another")
    assert lab.open().max_offset("T", 0) == 1


def test_a_lost_sector_may_hold_the_first_bytes_of_a_sound_record(
    lab: Lab, message: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are zero, being those of its size."""
    store = lab.open()
    store.put(message())
    store.flush()
    torn = store.put(message())
    # The next one begins 3 bytes before the end of the second sector.
    fixed_bytes = torn.size_bytes - len(b"body")
    store.put(message(b"." * (1021 - torn.end_offset - fixed_bytes)))
    assert store.put(message()).physical_offset == 1021
    lab = lab.crash()
    damage(lab, torn.physical_offset + 20, bytes(512 - torn.physical_offset - 20))
    damage(lab, 512, bytes(512))
    monkeypatch.setattr(lab.files, "boot_id", lambda: "another")
    assert lab.open().max_offset("T", 0) == 1


@pytest.mark.parametrize("is_kill", [True, False])
def test_properties_that_end_with_a_zero_do_not_stop_the_start(
    lab: Lab, message: Make, is_kill: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody forbids them. After a power loss they look like a lost piece, after a kill nothing is lost."""
    store = lab.open()
    for number in range(COUNT):
        # Some are the last of their file: then a blank record and another file follow.
        store.put(message(b"%03d" % number + b"." * 300, properties=b"p\x01v\0"))
    lab = lab.crash()
    if not is_kill:
        monkeypatch.setattr(lab.files, "boot_id", lambda: "another")
    assert numbers(lab.open()) == (list(range(COUNT - 1)) if is_kill else [])


def test_a_missing_last_file_is_refused(lab: Lab, message: Make) -> None:
    last = fill(lab, message)[-1]
    path = log_file(lab, last.physical_offset)
    path.unlink()
    with pytest.raises(CorruptFile, match=f"on disk up to offset {last.end_offset}"):
        lab.open()
    assert not path.exists()
    lab.change(log={"recover_by_truncating": True})
    assert numbers(lab.open()) == list(range(len(numbers(lab.open_stores[-1]))))


def test_zeros_instead_of_a_record_with_sound_ones_behind_are_passed_over(
    lab: Lab, message: Make
) -> None:
    stored = fill(lab, message)
    middle = stored[COUNT - 5]
    damage(lab, middle.physical_offset, bytes(middle.size_bytes))
    assert numbers(lab.open()) == all_but(COUNT - 5)


def test_a_torn_tail_is_cut_and_wiped(lab: Lab, message: Make) -> None:
    stored = fill(lab, message, close=False)
    lab = lab.crash()
    end = stored[-1].end_offset
    garbage = (
        b"\x00\x00\x01\x00\xda\xa3\x20\xa7" + b"garbage" * 20 if end % 4096 < 3900 else b"\x00\x01"
    )
    damage(lab, end, garbage)
    store = lab.open()
    assert numbers(store) == list(range(COUNT))
    assert store.max_physical == end
    store.close()
    raw = log_file(lab, end).read_bytes()
    assert raw[end % 4096 :].strip(b"\0") == b""


def test_a_record_that_lost_the_end_of_its_properties_is_not_given_out(
    lab: Lab, message: Make
) -> None:
    fill(lab, message, close=False)
    store = lab.open_stores[-1]
    stored = store.put(message(b"999", properties=b"p\x01" + b"v" * 100 + b"\x02"))
    lab = lab.crash()
    damage(lab, stored.end_offset - 40, bytes(40))
    recovered = lab.open()
    assert numbers(recovered) == list(range(COUNT))
    assert recovered.max_physical == stored.physical_offset


def test_removed_queues_are_rebuilt_byte_for_byte(lab: Lab, message: Make) -> None:
    fill(lab, message)
    before = tree(lab.root / "consumequeue")
    shutil.rmtree(lab.root / "consumequeue")
    store = lab.open()
    assert numbers(store) == list(range(COUNT))
    store.close()
    assert tree(lab.root / "consumequeue") == before


@pytest.mark.parametrize("clean", [True, False])
def test_a_zeroed_last_file_of_one_queue_is_rebuilt(lab: Lab, message: Make, clean: bool) -> None:
    fill(lab, message, close=clean)
    lab = lab.crash()
    queue = lab.root / "consumequeue" / "T" / "1"
    before = tree(queue)
    last = max(queue.iterdir())
    last.write_bytes(bytes(200))
    store = lab.open()
    assert numbers(store) == list(range(COUNT))
    store.close()
    assert tree(queue) == before


@pytest.mark.parametrize("clean", [True, False])
def test_one_removed_queue_directory_is_rebuilt(lab: Lab, message: Make, clean: bool) -> None:
    fill(lab, message, close=clean)
    lab = lab.crash()
    before = tree(lab.root / "consumequeue")
    shutil.rmtree(lab.root / "consumequeue" / "T" / "0")
    store = lab.open()
    assert numbers(store) == list(range(COUNT))
    store.close()
    assert tree(lab.root / "consumequeue") == before


def test_without_a_checkpoint_an_unclean_store_is_recovered_from_the_first_file(
    lab: Lab, message: Make
) -> None:
    fill(lab, message, close=False)
    lab = lab.crash()
    (lab.root / "checkpoint").unlink()
    assert numbers(lab.open()) == list(range(COUNT))


@pytest.mark.parametrize("known_by", ["checkpoint", "consumequeue"])
@pytest.mark.parametrize("clean", [True, False])
def test_missing_log_files_are_refused_while_anything_knows_of_them(
    lab: Lab, message: Make, known_by: str, clean: bool
) -> None:
    """A disk that was not mounted must not cost the queues, nor start an empty broker."""
    fill(lab, message, close=clean)
    lab = lab.crash()
    shutil.rmtree(lab.root / "commitlog")
    if known_by == "checkpoint":
        shutil.rmtree(lab.root / "consumequeue")
    else:
        (lab.root / "checkpoint").unlink()
    before = tree(lab.root)
    with pytest.raises(CorruptFile, match="commitlog: no log files, though") as refusal:
        lab.open()
    assert known_by in str(refusal.value)
    assert tree(lab.root) == before


def test_without_log_files_queues_and_index_go_if_the_operator_says_so(
    lab: Lab, message: Make
) -> None:
    fill(lab, message)
    shutil.rmtree(lab.root / "commitlog")
    lab.change(log={"recover_by_truncating": True})
    store = lab.open()
    assert store.topics() == []
    assert store.max_physical == 0
    assert store.put(message("000")).queue_offset == 0
    assert store.query("T", "k3", 32, 0, 1 << 62).parts == []
    assert numbers(lab.crash().open()) == [0]


def test_an_index_of_an_unclean_stop_is_complete_again(lab: Lab, message: Make) -> None:
    fill(lab, message, close=False)
    crashed = lab.crash().open()
    for number in range(COUNT):
        (found,) = crashed.query("T", f"k{number}", 32, 0, 1 << 62).parts
        assert decode_record(found).body[:3] == b"%03d" % number


def test_an_index_is_complete_again_when_the_checkpoint_was_torn_too(
    lab: Lab, message: Make
) -> None:
    """The times alone say that the queues are complete; the index, whose header comes last, is far behind."""
    fill(lab, message, flush_at=COUNT)
    store = lab.open_stores[-1]
    lab.clock.ms += 10_000
    store.put(message())
    store.maintain()
    store._log_flusher.flush()
    store._queue_flusher.flush()
    crashed = lab.crash()
    with (crashed.root / "checkpoint").open("r+b") as checkpoint:
        checkpoint.seek(OWN_AT)
        checkpoint.write(bytes(8))
    recovered = crashed.open()
    for number in range(COUNT):
        (found,) = recovered.query("T", f"k{number}", 32, 0, 1 << 62).parts
        assert decode_record(found).body[:3] == b"%03d" % number


def test_a_deleted_topic_does_not_come_back_and_its_namesake_is_its_own(
    lab: Lab, message: Make
) -> None:
    fill(lab, message, close=False)
    store = lab.open_stores[-1]
    store.delete_topic("T")
    store.put(message("other", topic="O"))
    gone = lab.crash("gone").open()
    assert gone.topics() == ["O"]
    store.put(message(b"900"))
    store.put(message(b"901"))
    assert numbers(lab.crash("again").open()) == [900, 901]
    store.close()
    clean = lab.open()
    assert numbers(clean) == [900, 901]


def test_a_queue_that_starts_in_the_middle_begins_with_fillers(lab: Lab, message: Make) -> None:
    fill(lab, message)
    shutil.rmtree(lab.root / "consumequeue")
    shutil.rmtree(lab.root / "index")
    for path in sorted((lab.root / "commitlog").iterdir())[:2]:
        path.unlink()
    store = lab.open()
    first = store.min_offset("T", 0)
    assert first > 0
    assert numbers(store) == list(range(min(numbers(store)), COUNT))
    assert store.max_offset("T", 0) == COUNT // 2
    store.close()
    (path, *_) = sorted((lab.root / "consumequeue" / "T" / "0").iterdir())
    raw = path.read_bytes()
    start = int(path.name) // 20
    filler = bytes(8) + b"\x7f\xff\xff\xff" + bytes(8)
    assert raw[: (first - start) * 20] == filler * (first - start)
    assert raw[(first - start) * 20 :][:20] != filler


@pytest.mark.parametrize(
    "path",
    [
        "commitlog/readme",
        "consumequeue/T/0/readme",
        "consumequeue/T/x/y",
        "consumequeue/T/readme",
        "consumequeue/readme.txt",
        "index/readme",
    ],
)
def test_a_foreign_file_is_named_and_nothing_changed(lab: Lab, message: Make, path: str) -> None:
    fill(lab, message)
    foreign = lab.root / path
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_bytes(b"precious")
    before = tree(lab.root)
    with pytest.raises(CorruptFile) as refusal:
        lab.open()
    assert refusal.value.path.startswith(str(lab.root / path.rsplit("/", 1)[0]))
    after = tree(lab.root)
    after.pop("abort", None)
    assert after == before


def test_a_queue_file_of_another_length_is_refused(lab: Lab, message: Make) -> None:
    fill(lab, message)
    lab.change(queues={"file_bytes": 400})
    with pytest.raises(CorruptFile, match="mappedFileSizeConsumeQueue"):
        lab.open()


def test_an_empty_directory_is_a_new_store(lab: Lab) -> None:
    store = lab.open()
    assert (store.min_physical, store.max_physical) == (0, 0)
    assert (lab.root / "abort").exists()
    assert (lab.root / "lock").read_bytes() == b"lock"
    assert (lab.root / "checkpoint").stat().st_size == 4096
    store.close()
    assert not (lab.root / "abort").exists()
