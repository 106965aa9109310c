"""Backups of a store that is open, and what is restored from them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from tests.unit.store.conftest import HOST, MakeMessage, StoreLab

from cometmq.base.errors import CorruptFile, DiskFull, StoreError, UsageError
from cometmq.base.ports import Files
from cometmq.store.backup.backups import Backups
from cometmq.store.backup.create import create
from cometmq.store.backup.manifest import Manifest
from cometmq.store.backup.restore import Restored, restore
from cometmq.store.backup.source import Source
from cometmq.store.backup.verify import verify
from cometmq.store.files.store_directory import UNFINISHED_RESTORE
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.consumer_offsets import OffsetTable
from cometmq.store.meta.delay_offsets import DelayOffsetTable
from cometmq.store.meta.topics import TopicTable
from cometmq.store.store_config import StoreConfig

HOUR_MS = 3_600_000


def no_tell(what: str, done: int, total: int) -> None:
    pass


class BackupLab:
    """A store, a directory of backups, and places to restore to."""

    def __init__(self, lab: StoreLab, directory: Path) -> None:
        self.lab = lab
        self.directory = directory
        self.backups = Backups(str(directory / "backups"), lab.files)
        self.restores = 0

    def create(self, tell: Callable[[str, int, int], None] = no_tell) -> Manifest:
        config = self.lab.config
        with closing(Source(config.root, config.log_path, self.lab.files)) as source:
            return create(source, self.backups, self.lab.clock, pause=lambda: None, tell=tell)

    def target(self) -> StoreConfig:
        self.restores += 1
        root = str(self.directory / f"restored-{self.restores}")
        return dataclasses.replace(self.lab.config, root=root)

    def restore(
        self, config: StoreConfig, name: str | None = None, at_ms: int | None = None, **kind: bool
    ) -> Restored:
        return restore(
            self.backups,
            config,
            self.lab.clock,
            name=name,
            at_ms=at_ms,
            accept_damage=kind.get("accept_damage", False),
            tell=no_tell,
        )

    def restored(self, name: str | None = None, at_ms: int | None = None) -> MessageStore:
        config = self.target()
        self.restore(config, name, at_ms)
        return self.open(config)

    def open(self, config: StoreConfig) -> MessageStore:
        store = MessageStore(config, store_host=HOST, files=self.lab.files, clock=self.lab.clock)
        store.load()
        self.lab.open_stores.append(store)
        return store

    def log_file(self, number: int) -> Path:
        return sorted((self.directory / "backups" / "log").iterdir())[number]


@pytest.fixture
def backup_lab(lab: StoreLab, tmp_path: Path) -> BackupLab:
    return BackupLab(lab, tmp_path)


def bodies(store: MessageStore, topic: str = "T", queue_id: int = 0) -> list[bytes]:
    found = []
    offset = store.min_offset(topic, queue_id)
    for physical, _, _ in store.entries(topic, queue_id, offset, 10_000):
        record = store.decoded_at(physical)
        assert record is not None
        found.append(record.body)
    return found


def fill(
    store: MessageStore, message: MakeMessage, first: int, last: int, **fields: object
) -> None:
    for number in range(first, last):
        store.put(message(f"{number}-" + "x" * 300, **fields))


def expected(first: int, last: int) -> list[bytes]:
    return [f"{number}-".encode() + b"x" * 300 for number in range(first, last)]


def test_a_store_that_is_open_is_backed_up_and_restored(
    backup_lab: BackupLab, message: MakeMessage
) -> None:
    store = backup_lab.lab.open()
    fill(store, message, 0, 40)
    manifest = backup_lab.create()
    assert (manifest.log_start, manifest.log_end) == (0, store.max_physical)
    fill(store, message, 40, 50)

    restored = backup_lab.restored()
    assert bodies(restored) == expected(0, 40)
    assert restored.max_offset("T", 0) == 40
    stored = restored.put(message("next"))
    assert (stored.queue_offset, stored.physical_offset) == (40, manifest.log_end)
    assert not verify(backup_lab.backups, manifest, no_tell).faults


def test_the_second_backup_copies_only_what_is_new(
    backup_lab: BackupLab, message: MakeMessage
) -> None:
    store = backup_lab.lab.open()
    fill(store, message, 0, 25)
    first = backup_lab.create()
    fill(store, message, 25, 30)
    backup_lab.lab.clock.ms += HOUR_MS
    second = backup_lab.create()
    assert second.copied_bytes == second.log_end - first.log_end < 3000
    nothing = backup_lab.create()
    assert nothing.copied_bytes == 0
    assert bodies(backup_lab.restored(first.name)) == expected(0, 25)
    assert bodies(backup_lab.restored(second.name)) == expected(0, 30)
    for manifest in backup_lab.backups.all():
        assert not verify(backup_lab.backups, manifest, no_tell).faults
    assert [one.name for one in backup_lab.backups.all()] == [
        one.name for one in (first, second, nothing)
    ]


def test_restore_to_a_time(backup_lab: BackupLab, message: MakeMessage) -> None:
    store = backup_lab.lab.open()
    clock = backup_lab.lab.clock
    start_ms = clock.ms
    for number in range(40):
        clock.ms = start_ms + number * 1000
        fill(store, message, number, number + 1)
    backup_lab.create()
    for number in (0, 7, 8, 30, 39):
        at_ms = start_ms + number * 1000
        assert bodies(backup_lab.restored(at_ms=at_ms)) == expected(0, number + 1)
        assert bodies(backup_lab.restored(at_ms=at_ms + (number < 39))) == expected(0, number + 1)
    with pytest.raises(UsageError, match="before the first message"):
        backup_lab.restored(at_ms=start_ms - 1)
    with pytest.raises(UsageError, match=r"taken at .* or later"):
        backup_lab.restored(at_ms=clock.ms + 1)


def test_tables_of_a_time_are_those_of_the_backup_before_it(
    backup_lab: BackupLab, message: MakeMessage
) -> None:
    lab = backup_lab.lab
    store = lab.open()
    offsets = OffsetTable(lab.config.path("config"), lab.files, lab.clock)
    topics = TopicTable(lab.config.path("config"), lab.files, lab.clock)
    offsets.load()
    topics.load()
    fill(store, message, 0, 10)
    offsets.commit("readers", "T", 0, 4)
    offsets.save_if_changed()
    write_topics(lab, {"T": {"topicName": "T"}})
    backup_lab.create()
    lab.clock.ms += HOUR_MS
    fill(store, message, 10, 20)
    between_ms = lab.clock.ms
    lab.clock.ms += HOUR_MS
    fill(store, message, 20, 30)
    offsets.commit("readers", "T", 0, 30)
    offsets.save_if_changed()
    write_topics(lab, {"T": {"topicName": "T", "readQueueNums": 9}, "New": {"topicName": "New"}})
    backup_lab.create()

    config = backup_lab.target()
    result = backup_lab.restore(config, at_ms=between_ms)
    assert result.chosen.has_older_tables
    restored = OffsetTable(config.path("config"), lab.files, lab.clock)
    restored.load()
    assert restored.query("readers", "T", 0) == 4
    known = TopicTable(config.path("config"), lab.files, lab.clock)
    known.load()
    assert sorted(known.names()) == ["New", "T"]
    assert known.all()["T"].read_queue_nums != 9

    # Without an earlier backup the later positions have to do, as far as the queues go.
    backup_lab.backups.remove(backup_lab.backups.all()[0].name)
    config = backup_lab.target()
    result = backup_lab.restore(config, at_ms=between_ms)
    assert (result.chosen.has_older_tables, result.set_back) == (False, 1)
    restored = OffsetTable(config.path("config"), lab.files, lab.clock)
    restored.load()
    assert restored.query("readers", "T", 0) == 20


def write_topics(lab: StoreLab, entries: dict[str, object]) -> None:
    lab.files.make_directory(lab.config.path("config"))
    lab.files.replace(
        lab.config.path("config/topics.json"),
        msgspec.json.encode({"topicConfigTable": entries}),
    )


def test_what_was_delivered_after_the_time_is_delivered_again(
    backup_lab: BackupLab, message: MakeMessage
) -> None:
    lab = backup_lab.lab
    store = lab.open()
    table = DelayOffsetTable(lab.config.path("config"), lab.files, lab.clock)
    table.load()
    fill(store, message, 0, 3)
    before_ms = lab.clock.ms
    lab.clock.ms += HOUR_MS
    fill(store, message, 3, 6)
    table.saving({3: 17}, store.max_physical)()
    backup_lab.create()
    for at_ms, offsets, log_offset in [
        (before_ms, {}, 0),
        (None, {3: 17}, store.max_physical),
    ]:
        config = backup_lab.target()
        backup_lab.restore(config, at_ms=at_ms)
        restored = DelayOffsetTable(config.path("config"), lab.files, lab.clock)
        restored.load()
        assert (restored.offsets, restored.log_offset) == (offsets, log_offset)


def test_a_queue_without_messages_goes_on_where_it_ended(
    backup_lab: BackupLab, message: MakeMessage
) -> None:
    lab = backup_lab.lab
    lab.change(retention={"reserved_hours": 1, "delete_interval_ms": 0})
    store = lab.open()
    fill(store, message, 0, 23, topic="Old", queue_id=2)
    fill(store, message, 0, 10, topic="Ten", queue_id=0)
    store.flush()
    for path in Path(lab.config.log_path).iterdir():
        os.utime(path, (1, 1))
    fill(store, message, 0, 40)
    store.flush()
    store.delete_expired_files()
    store.maintain()
    assert store.min_physical > 0
    assert store.min_offset("Old", 2) == store.max_offset("Old", 2) == 23
    first = backup_lab.create()
    before_ms = lab.clock.ms
    lab.clock.ms += 1000
    fill(store, message, 23, 25, topic="Old", queue_id=2)
    fill(store, message, 0, 1, topic="Late", queue_id=0)
    backup_lab.create()
    for restored in (backup_lab.restored(first.name), backup_lab.restored(at_ms=before_ms + 1)):
        assert restored.min_physical == store.min_physical
        assert restored.min_offset("Old", 2) == restored.max_offset("Old", 2) == 23
        assert restored.put(message(topic="Old", queue_id=2)).queue_offset == 23
        # Ten entries fill the files of this queue.
        assert restored.max_offset("Ten", 0) == 10
        assert restored.put(message(topic="Ten")).queue_offset == 10
        assert restored.max_offset("Late", 0) == 0


def test_a_deleted_topic_stays_deleted_but_not_before_its_time(
    backup_lab: BackupLab, message: MakeMessage
) -> None:
    lab = backup_lab.lab
    store = lab.open()
    fill(store, message, 0, 5, topic="Gone")
    before_ms = lab.clock.ms
    lab.clock.ms += HOUR_MS
    fill(store, message, 0, 5)
    store.delete_topic("Gone")
    backup_lab.create()
    assert "Gone" not in backup_lab.restored().topics()
    assert bodies(backup_lab.restored(at_ms=before_ms), "Gone") == expected(0, 5)


def test_log_files_that_expire_while_they_are_copied(
    backup_lab: BackupLab, message: MakeMessage
) -> None:
    lab = backup_lab.lab
    store = lab.open()
    fill(store, message, 0, 60)
    log = sorted(Path(lab.config.log_path).iterdir())

    def expire(what: str, done: int, total: int) -> None:
        if what == "copied" and log[2].exists():
            for path in log[:3]:
                path.unlink()

    manifest = backup_lab.create(expire)
    assert manifest.log_start == 3 * lab.config.log.file_bytes
    restored = backup_lab.restored()
    assert restored.min_physical == manifest.log_start
    assert bodies(restored) == expected(restored.min_offset("T", 0), 60)


def test_a_store_that_went_on_differently_is_refused(
    backup_lab: BackupLab, message: MakeMessage
) -> None:
    lab = backup_lab.lab
    store = lab.open()
    fill(store, message, 0, 20)
    early = backup_lab.create()
    early_store = backup_lab.target()
    backup_lab.restore(early_store)
    fill(store, message, 20, 25)
    lab.clock.ms += 1
    newest = backup_lab.create()
    lab.close()

    lab.config = early_store
    shorter = lab.open()
    with pytest.raises(StoreError, match="expected a log that reaches offset"):
        backup_lab.create()
    fill(shorter, message, 70, 80)
    with pytest.raises(StoreError, match=f"differs from the backup {newest.name}"):
        backup_lab.create()
    # What was there is not touched.
    assert bodies(backup_lab.restored(newest.name)) == expected(0, 25)
    assert bodies(backup_lab.restored(early.name)) == expected(0, 20)


def test_damage_in_a_backup_is_named_and_not_restored(
    backup_lab: BackupLab, message: MakeMessage
) -> None:
    store = backup_lab.lab.open()
    fill(store, message, 0, 40)
    manifest = backup_lab.create()
    path = backup_lab.log_file(1)
    content = bytearray(path.read_bytes())
    content[2000] ^= 1
    path.write_bytes(content)
    verdict = verify(backup_lab.backups, manifest, no_tell)
    assert any(f"{path}: damaged between bytes 0 and 4096" in fault for fault in verdict.faults)
    config = backup_lab.target()
    with pytest.raises(CorruptFile, match="damaged between bytes 0 and 4096"):
        backup_lab.restore(config)
    assert not Path(config.root).exists()
    accepted = backup_lab.restore(config, accept_damage=True)
    assert len(accepted.accepted) == 1
    assert len(bodies(backup_lab.open(config), "T")) >= 0


def test_damage_in_the_store_is_noted_and_passed_over(
    backup_lab: BackupLab, message: MakeMessage
) -> None:
    store = backup_lab.lab.open()
    fill(store, message, 0, 40)
    [(physical, _, _)] = store.entries("T", 0, 20, 1)
    path = Path(store.config.log_path, f"{physical - physical % 4096:020d}")
    with path.open("r+b") as file:
        file.seek(physical % 4096 + 150)
        file.write(b"?")
    manifest = backup_lab.create()
    assert manifest.damaged == [physical]
    assert not verify(backup_lab.backups, manifest, no_tell).faults
    restored = backup_lab.restored()
    assert restored.max_offset("T", 0) == 40


def test_a_damaged_table_is_named(backup_lab: BackupLab, message: MakeMessage) -> None:
    lab = backup_lab.lab
    fill(lab.open(), message, 0, 3)
    write_topics(lab, {"T": {}})
    manifest = backup_lab.create()
    table = Path(backup_lab.backups.tables_of(manifest.name), "config/topics.json")
    table.write_bytes(b"{}")
    [fault] = verify(backup_lab.backups, manifest, no_tell).faults
    assert fault == f"{table}: not what was backed up"
    with pytest.raises(CorruptFile, match=r"topics\.json"):
        backup_lab.restored()


def test_nothing_is_restored_over_a_store(backup_lab: BackupLab, message: MakeMessage) -> None:
    lab = backup_lab.lab
    fill(lab.open(), message, 0, 3)
    backup_lab.create()
    with pytest.raises(UsageError, match="expected no store there yet, found"):
        backup_lab.restore(lab.config)
    config = dataclasses.replace(
        backup_lab.target(), log_directory=str(backup_lab.directory / "elsewhere")
    )
    Path(config.log_path).mkdir()
    Path(config.log_path, "mine").touch()
    with pytest.raises(UsageError, match="found mine"):
        backup_lab.restore(config)
    assert not Path(config.root).exists()
    Path(config.log_path, "mine").unlink()
    backup_lab.restore(config)
    assert bodies(backup_lab.open(config)) == expected(0, 3)


def test_another_size_of_log_files_is_refused(backup_lab: BackupLab, message: MakeMessage) -> None:
    fill(backup_lab.lab.open(), message, 0, 3)
    backup_lab.create()
    config = backup_lab.target()
    log = dataclasses.replace(config.log, file_bytes=8192)
    with pytest.raises(UsageError, match="mappedFileSizeCommitLog=8192: set it to 4096"):
        backup_lab.restore(dataclasses.replace(config, log=log))


def test_a_full_disk_is_told_before_anything_is_copied(
    backup_lab: BackupLab, message: MakeMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = backup_lab.lab
    fill(lab.open(), message, 0, 20)
    monkeypatch.setattr(type(lab.files), "space", lambda self, path: (1 << 40, 100))
    with pytest.raises(DiskFull, match="bytes of log are to be copied, and 100 are free"):
        backup_lab.create()
    monkeypatch.undo()
    backup_lab.create()
    assert bodies(backup_lab.restored()) == expected(0, 20)


def test_an_unfinished_restore_begins_anew(backup_lab: BackupLab, message: MakeMessage) -> None:
    lab = backup_lab.lab
    fill(lab.open(), message, 0, 20)
    backup_lab.create()
    config = backup_lab.target()
    for name in ("commitlog", "config", "empty"):
        Path(config.root, name).mkdir(parents=True)
    Path(config.root, "commitlog", "00000000000000000000").write_bytes(b"half")
    Path(config.root, UNFINISHED_RESTORE).touch()
    backup_lab.restore(config)
    assert bodies(backup_lab.open(config)) == expected(0, 20)
    assert not Path(config.root, UNFINISHED_RESTORE).exists()


def test_removed_backups_take_their_log_with_them(
    backup_lab: BackupLab, message: MakeMessage
) -> None:
    lab = backup_lab.lab
    store = lab.open()
    fill(store, message, 0, 40)
    first = backup_lab.create()
    for path in sorted(Path(lab.config.log_path).iterdir())[:2]:
        path.unlink()
    lab.clock.ms += 1
    second = backup_lab.create()
    assert second.log_start == 8192
    backup_lab.backups.remove(first.name)
    backup_lab.backups.remove_unused_log()
    assert backup_lab.log_file(0).name == f"{8192:020d}"
    assert not verify(backup_lab.backups, second, no_tell).faults
    with pytest.raises(UsageError, match="expected the name of a backup"):
        backup_lab.backups.find(first.name)


def test_a_directory_of_other_things_is_refused(
    backup_lab: BackupLab, message: MakeMessage
) -> None:
    lab = backup_lab.lab
    fill(lab.open(), message, 0, 1)
    with pytest.raises(UsageError, match="expected a directory of backups, but"):
        backup_lab.backups.find(None)
    (backup_lab.directory / "backups").mkdir()
    (backup_lab.directory / "backups" / "photos").mkdir()
    with pytest.raises(UsageError, match="found photos in it"):
        backup_lab.create()


def test_only_one_backup_at_a_time(backup_lab: BackupLab, message: MakeMessage) -> None:
    fill(backup_lab.lab.open(), message, 0, 1)
    backup_lab.create()
    files: Files = backup_lab.lab.files
    # A lock of the same process does not exclude it on a real disk.
    with pytest.MonkeyPatch.context() as patch:

        def held(self: object, path: str) -> None:
            raise StoreError("held")

        patch.setattr(type(files), "lock", held)
        with pytest.raises(StoreError, match="in use by another backup or restore"):
            backup_lab.create()


def test_a_store_without_messages_cannot_be_backed_up(backup_lab: BackupLab) -> None:
    backup_lab.lab.open()
    Path(backup_lab.lab.config.log_path).mkdir(exist_ok=True)
    with pytest.raises(StoreError, match="its log has no file yet"):
        backup_lab.create()
