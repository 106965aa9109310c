"""The faults of the fake disk: a simulation is worth as much as these."""

from __future__ import annotations

import pytest

from cometmq.base.errors import DiskFull
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import Crashed, FaultyFiles, Moment, Outage

SECTOR = 512
PAGE = 4096


def disk(seed: int = 0) -> FaultyFiles:
    files = FaultyFiles(FakeClock(), seed=seed)
    files.make_directory("/d")
    return files


def allocated(files: FaultyFiles, path: str = "/d/one", size_bytes: int = PAGE) -> None:
    files.create(path, size_bytes, allocate=True)


@pytest.mark.parametrize(
    ("moment", "found"), [(Moment.BEFORE, {b"...."}), (Moment.AFTER, {b"abcd"})]
)
def test_a_crash_before_or_after_a_write(moment: Moment, found: set[bytes]) -> None:
    files = disk()
    file = files.create("/d/one", 4, allocate=True)
    file.write_at(0, b"....")
    files.crash_in(1, moment)
    with pytest.raises(Crashed, match=f"{moment.value} write"):
        file.write_at(0, b"abcd")
    files.restart(Outage.PROCESS_KILL)
    assert files.read("/d/one") in found


def test_a_crash_in_the_middle_of_a_write_leaves_a_first_part() -> None:
    found = set()
    for seed in range(50):
        files = disk(seed)
        file = files.create("/d/one", 4, allocate=True)
        files.crash_in(1, Moment.MIDDLE)
        with pytest.raises(Crashed):
            file.write_at(0, b"abcd")
        files.restart(Outage.PROCESS_KILL)
        found.add(files.read("/d/one").rstrip(b"\0"))
    assert found == {b"", b"a", b"ab", b"abc", b"abcd"}


def test_after_a_crash_nothing_works_until_the_restart() -> None:
    files = disk()
    file = files.create("/d/one", 4, allocate=True)
    lock = files.lock("/d/lock")
    files.crash_now()
    for call in (
        lambda: file.write_at(0, b"a"),
        lambda: file.read_at(0, 1),
        lambda: file.sync(),
        lambda: files.read("/d/one"),
        lambda: files.exists("/d/one"),
        lambda: files.remove("/d/one"),
        lambda: files.names("/d"),
    ):
        with pytest.raises(Crashed):
            call()
    file.close()
    files.restart(Outage.PROCESS_KILL)
    files.lock("/d/lock")
    lock.release()
    with pytest.raises(Crashed, match="process that is gone"):
        file.write_at(0, b"a")
    assert files.read("/d/one") == bytes(4)


def test_a_kill_keeps_every_write_and_a_power_loss_later_may_not() -> None:
    outcomes = set()
    for seed in range(40):
        files = disk(seed)
        files.create("/d/one", 4, allocate=True).write_at(0, b"abcd")
        files.restart(Outage.PROCESS_KILL)
        assert files.read("/d/one") == b"abcd"
        files.restart(Outage.POWER_LOSS)
        outcomes.add(files.read("/d/one"))
    assert outcomes == {b"abcd", bytes(4)}


def test_what_was_synced_survives_any_number_of_power_losses() -> None:
    for seed in range(20):
        files = disk(seed)
        file = files.create("/d/one", 2 * SECTOR, allocate=True)
        file.write_at(0, b"a" * 2 * SECTOR)
        file.sync()
        file.write_at(0, b"b" * 2 * SECTOR)
        files.restart(Outage.POWER_LOSS)
        first = files.read("/d/one")
        assert {first[:SECTOR], first[SECTOR:]} <= {b"a" * SECTOR, b"b" * SECTOR}
        files.restart(Outage.POWER_LOSS)
        assert files.read("/d/one") == first


def test_unsynced_writes_are_lost_torn_and_reordered_by_sector() -> None:
    outcomes = set()
    for seed in range(300):
        files = disk(seed)
        file = files.create("/d/one", 2 * SECTOR, allocate=True)
        file.write_at(SECTOR - 1, b"ab")
        file.write_at(SECTOR - 1, b"cd")
        files.restart(Outage.POWER_LOSS)
        outcomes.add(files.read("/d/one")[SECTOR - 1 : SECTOR + 1])
    letters = {first + second for first in (b"\0", b"a", b"c") for second in (b"\0", b"b", b"d")}
    assert outcomes == letters


def test_within_a_sector_a_later_write_never_comes_without_an_earlier_one() -> None:
    outcomes = set()
    for seed in range(100):
        files = disk(seed)
        file = files.create("/d/one", SECTOR, allocate=True)
        file.write_at(0, b"a")
        file.write_at(1, b"b")
        files.restart(Outage.POWER_LOSS)
        outcomes.add(files.read("/d/one")[:2])
    assert outcomes == {b"\0\0", b"a\0", b"ab"}


def test_a_name_is_certain_only_after_its_directory_is_synced() -> None:
    outcomes = set()
    for seed in range(40):
        files = disk(seed)
        files.create("/d/one", SECTOR, allocate=False).sync()
        files.create("/d/two", SECTOR, allocate=False).sync()
        files.restart(Outage.POWER_LOSS)
        outcomes.add(tuple(files.names("/d")))
    assert outcomes == {(), ("one",), ("one", "two")}
    files = disk()
    files.create("/d/one", SECTOR, allocate=False).sync()
    files.sync_directory("/d")
    files.restart(Outage.POWER_LOSS)
    assert files.names("/d") == ["one"]


def test_a_removed_file_may_come_back_and_a_length_may_be_lost() -> None:
    names = set()
    sizes = set()
    for seed in range(40):
        files = disk(seed)
        allocated(files)
        files.remove("/d/one")
        files.create("/d/two", SECTOR, allocate=False)
        files.restart(Outage.POWER_LOSS)
        names.add(files.exists("/d/one"))
        if files.exists("/d/two"):
            sizes.add(files.size("/d/two"))
    assert names == {True, False}
    assert sizes == {0, SECTOR}


@pytest.mark.parametrize("moment", list(Moment))
@pytest.mark.parametrize("outage", list(Outage))
def test_an_allocated_file_is_whole_or_not_there(moment: Moment, outage: Outage) -> None:
    for calls in range(1, 6):
        files = disk(calls)
        files.crash_in(calls, moment)
        with pytest.raises(Crashed):
            allocated(files)
        files.restart(outage)
        assert not files.exists("/d/one") or files.size("/d/one") == PAGE


def test_a_full_disk_refuses_and_takes_again_when_there_is_space() -> None:
    files = disk()
    file = files.create("/d/sparse", 8 * PAGE, allocate=False)
    file.write_at(0, b"x")
    files.set_free(PAGE)
    file.write_at(1, b"y")
    file.write_at(PAGE, b"second block")
    with pytest.raises(DiskFull):
        file.write_at(2 * PAGE, b"third block")
    with pytest.raises(DiskFull):
        allocated(files)
    assert files.names("/d") == ["sparse"]
    assert files.used_ratio("/d") > 0.999
    files.set_free(2 * PAGE)
    file.write_at(2 * PAGE, b"third block")
    allocated(files)


def test_a_failed_sync_never_gets_its_writes_to_the_platter() -> None:
    files = disk()
    file = files.create("/d/one", SECTOR, allocate=True)
    file.write_at(0, b"lost")
    files.fail_syncs(1)
    with pytest.raises(OSError, match="sync failed"):
        file.sync()
    file.write_at(8, b"kept")
    file.sync()
    assert file.read_at(0, 4) == b"lost"
    files.restart(Outage.POWER_LOSS)
    assert files.read("/d/one")[:12] == bytes(8) + b"kept"


def test_the_boot_changes_with_the_power_only() -> None:
    files = disk()
    first = files.boot_id()
    files.restart(Outage.PROCESS_KILL)
    assert files.boot_id() == first
    files.restart(Outage.POWER_LOSS)
    assert files.boot_id() != first


def test_the_same_seed_makes_the_same_faults() -> None:
    def run(seed: int) -> bytes:
        files = disk(seed)
        file = files.create("/d/one", 64 * SECTOR, allocate=True)
        for position in range(0, 64 * SECTOR, 100):
            file.write_at(position, b"w" * 60)
        files.restart(Outage.POWER_LOSS)
        return files.read("/d/one")

    assert len({run(3), run(3)}) == 1
    assert len({run(seed) for seed in range(20)}) > 5
