"""Decisions in a file: what survives, what is refused, and that file and memory never differ."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.controller.group_of import group_of

from cometmq.base.disk import SystemFiles
from cometmq.base.errors import CometError, StoreError
from cometmq.controller.decision_store import NEVER_STORED
from cometmq.controller.file_store import FILE_NAME, FileStore, decode, encode
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import Crashed, FaultyFiles, Moment, Outage

GROUP = group_of(3, master=2, in_sync=(1, 2), epoch=4, set_epoch=7)


def opened(files: FaultyFiles) -> FileStore:
    store = FileStore("/data", files)
    store.open()
    return store


async def test_decisions_survive_a_power_loss() -> None:
    files = FaultyFiles(FakeClock())
    store = opened(files)
    await store.swap("bk", NEVER_STORED, GROUP)
    files.restart(Outage.POWER_LOSS)
    again = opened(files)
    held = again.known()["bk"]
    assert (held.group, held.version) == (GROUP, 1)
    assert not await again.swap("bk", NEVER_STORED, group_of(1))


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("outage", Outage)
async def test_a_crash_leaves_the_old_decision_or_the_new_one(
    moment: Moment, outage: Outage
) -> None:
    for calls in range(1, 12):
        files = FaultyFiles(FakeClock(), seed=calls)
        store = opened(files)
        await store.swap("bk", NEVER_STORED, group_of(1))
        files.crash_in(calls, moment)
        try:
            is_stored = await store.swap("bk", 1, GROUP)
        except (Crashed, CometError, OSError):
            is_stored = False
        files.restart(outage)
        found = opened(files).known()["bk"].group
        assert found == GROUP if is_stored else found in (GROUP, group_of(1))


async def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    class FullDisk(SystemFiles):
        def replace(self, path: str, data: bytes) -> None:
            raise OSError(5, "Input/output error")

    store = FileStore(str(tmp_path), FullDisk())
    store.open()
    with pytest.raises(StoreError, match=r"decisions\.json cannot be written: Input/output error"):
        await store.swap("bk", NEVER_STORED, GROUP)
    assert store.known() == {}


async def test_a_caller_that_is_cancelled_leaves_file_and_memory_alike(tmp_path: Path) -> None:
    store = FileStore(str(tmp_path), SystemFiles())
    store.open()
    task = asyncio.create_task(store.swap("bk", NEVER_STORED, GROUP))
    await asyncio.sleep(0)
    task.cancel()
    await store.close()
    assert store.known() == decode("", (tmp_path / FILE_NAME).read_bytes())
    assert store.known()["bk"].group == GROUP
    with pytest.raises(StoreError, match="closed"):
        await store.swap("bk", 1, GROUP)


async def test_two_controllers_do_not_share_a_directory() -> None:
    files = FaultyFiles(FakeClock())
    store = opened(files)
    with pytest.raises(StoreError, match="another controller uses /data"):
        FileStore("/data", files).open()
    await store.close()
    opened(files)


def test_the_directory_of_a_java_controller_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dledger-n0").mkdir()
    with pytest.raises(StoreError, match="dledger-n0 is of a RocketMQ controller"):
        FileStore(str(tmp_path), SystemFiles()).open()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"controllerStorePath .* cannot be used"):
        FileStore(str(tmp_path / "file" / "store"), SystemFiles()).open()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-20],
        lambda data: b"\xff" + data,
        lambda data: data.replace(b'"format": 1', b'"format": 2'),
        lambda data: data.replace(b'"master_id": 2', b'"master_id": 3'),
        lambda data: data.replace(b'"next_id": 4', b'"next_id": 3'),
        lambda data: data.replace(b'"version": 1', b'"version": 0'),
        lambda data: data.replace(b'"began_epoch": 0', b'"began_epoch": 5'),
        lambda data: data.replace(b'"master_epoch": 4', b'"master_epoch": 99999999999'),
    ],
)
async def test_a_damaged_file_is_refused_and_kept(damage: object, tmp_path: Path) -> None:
    assert callable(damage)
    store = FileStore(str(tmp_path), SystemFiles())
    store.open()
    await store.swap("bk", NEVER_STORED, GROUP)
    await store.close()
    path = tmp_path / FILE_NAME
    damaged = damage(path.read_bytes())
    assert damaged != path.read_bytes()
    path.write_bytes(damaged)
    for _ in range(2):  # It lets go of the directory, too.
        with pytest.raises(StoreError, match=r"decisions\.json: "):
            FileStore(str(tmp_path), SystemFiles()).open()
    assert path.read_bytes() == damaged


def test_the_file_is_readable_for_people() -> None:
    from cometmq.controller.decision_store import Held

    text = encode({"bk": Held(GROUP, 3)}).decode()
    assert '"broker_name": "bk"' in text
    assert decode("", text.encode()) == {"bk": Held(GROUP, 3)}
