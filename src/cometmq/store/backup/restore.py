"""Makes a store of a backup: of all of it, or as of a time.

    marker       while it is there, no broker opens the store
    checkpoint   says how far the log reaches, and that queues are to be made from it
    tables       as of a moment that is not after the end of the log
    log          every block checked before it counts
    queues       a start of the store makes them and the index; those without a message in the log get their ends
    offsets      groups that are ahead of a queue are set back to its end

A restore that is killed leaves the marker, and the next one begins anew.
"""

from __future__ import annotations

import logging
from contextlib import closing
from typing import Final, NamedTuple

from cometmq.base.errors import CorruptFile, UsageError
from cometmq.base.ports import TEMPORARY_SUFFIX, Clock, Files
from cometmq.store.backup.backups import Backups
from cometmq.store.backup.copy_log import LogCopier
from cometmq.store.backup.manifest import Manifest
from cometmq.store.backup.point_in_time import (
    Chosen,
    choose,
    deleted_below,
    find_cut,
    queues_after,
)
from cometmq.store.backup.read_back import Tell
from cometmq.store.backup.source import TABLES_DIRECTORY
from cometmq.store.backup.tables import fit_delay_offsets, restored_tables
from cometmq.store.backup.verify import fault_of
from cometmq.store.files.file_names import QUEUES_DIRECTORY, file_name
from cometmq.store.files.log_files import LogFiles, is_directory, names_in
from cometmq.store.files.queue_entry import ENTRY_BYTES, FILLER
from cometmq.store.files.store_directory import UNFINISHED_RESTORE
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.consumer_offsets import OffsetTable
from cometmq.store.recovery.checkpoint import Checkpoint, Marks
from cometmq.store.store_config import StoreConfig

logger = logging.getLogger("cometmq.store")

NO_STORE: Final = frozenset({"lost+found", UNFINISHED_RESTORE + TEMPORARY_SUFFIX})
"""Names in a place where there is no store: a disk's own, and what a kill leaves of a marker."""
_FILLERS_AT_ONCE: Final = 50_000
_NO_HOST: Final = bytes(8)
"""Nothing is appended while a store is rebuilt."""


class Restored(NamedTuple):
    """What there is now."""

    chosen: Chosen
    log_end: int
    last_stored_ms: int
    topics: int
    set_back: int
    """Positions of groups that were ahead of their queue."""
    accepted: list[str]
    """Damage that was copied because the caller accepts it."""


def restore(
    backups: Backups,
    config: StoreConfig,
    clock: Clock,
    *,
    name: str | None,
    at_ms: int | None,
    accept_damage: bool,
    tell: Tell,
) -> Restored:
    """
    Args:
        config: of the broker that is to use the store.
        name: of the backup; the newest by default.
        at_ms: messages stored later are left out; the backup is chosen by it.
        accept_damage: restore what is there, though a part of the backup is damaged.

    Raises:
        CorruptFile: the backup is damaged; the message names the place.
        DiskFull: no space; a restore into the same place begins anew.
        UsageError: there is a store already, no such backup, or another size of log files.
    """
    files = backups.files
    backups.check_exists()
    with backups.locked():
        known = backups.all()
        if at_ms is None:
            manifest = backups.find(name)
            chosen = Chosen(manifest, manifest)
        else:
            chosen = choose(known, at_ms)
        _check_sizes(config, chosen.log_of)
        with closing(backups.open_log()) as log:
            manifest = chosen.log_of
            end = manifest.log_end if at_ms is None else find_cut(log, manifest, at_ms)
            accepted = _check_blocks(log, manifest, end, accept_damage, tell)
            _begin(config, files)
            _write_checkpoint(config, files, end, at_ms or manifest.last_stored_ms)
            deleted = deleted_below(known, end)
            for table, content in restored_tables(backups, chosen, deleted, end).items():
                path = config.path(table)
                files.make_directory(path.rpartition("/")[0])
                files.replace(path, content)
            fit_delay_offsets(config.path(TABLES_DIRECTORY), files, clock, end)
            _copy_log(log, config, manifest, end, files, tell)
            queue_ends = _ends_of_empty_queues(log, manifest, end, deleted)
        set_back, topics, last_ms = _rebuild(config, files, clock, queue_ends, tell)
        logger.info("store restored root=%s log_end=%d topics=%d", config.root, end, topics)
        return Restored(chosen, end, last_ms, topics, set_back, accepted)


def _check_sizes(config: StoreConfig, manifest: Manifest) -> None:
    if config.log.file_bytes != manifest.file_bytes:
        raise UsageError(
            f"the backup has log files of {manifest.file_bytes} bytes, the store is to have "
            f"mappedFileSizeCommitLog={config.log.file_bytes}: set it to {manifest.file_bytes}"
        )


def _check_blocks(
    log: LogFiles, manifest: Manifest, end: int, accept_damage: bool, tell: Tell
) -> list[str]:
    """Before anything is written. Raises CorruptFile."""
    faults: list[str] = []
    for block in manifest.blocks:
        if block.start >= end:
            break
        if fault := fault_of(log, block):
            faults.append(fault)
        tell("checked", min(block.end, end) - manifest.log_start, end - manifest.log_start)
    if faults and not accept_damage:
        raise CorruptFile(
            manifest.name,
            "; ".join(faults[:3]) + (f"; and {len(faults) - 3} more" if len(faults) > 3 else ""),
            "Restore an older backup, or what is left of this one with --accept-damage",
        )
    return faults


def _begin(config: StoreConfig, files: Files) -> None:
    """Leave a marker in an empty place, or in one where a restore has left its own. Raises UsageError."""
    marker = config.path(UNFINISHED_RESTORE)
    places = [config.root]
    if not config.log_path.startswith(config.root + "/"):
        places.append(config.log_path)
    if files.exists(marker):
        for place in places:
            _empty(place, files, keep={UNFINISHED_RESTORE})
        return
    for place in places:
        if found := set(names_in(place, files)) - NO_STORE:
            raise UsageError(
                f"{place}: expected no store there yet, found {min(found)}; move it elsewhere, or restore into "
                "another directory"
            )
    for place in places:
        files.make_directory(place)
    files.replace(marker, b"a restore has not finished\n")
    files.make_directory(config.log_path)


def _empty(directory: str, files: Files, keep: set[str]) -> None:
    for name in set(names_in(directory, files)) - NO_STORE - keep:
        path = f"{directory}/{name}"
        files.remove_tree(path) if is_directory(path, files) else files.remove(path)


def _write_checkpoint(config: StoreConfig, files: Files, end: int, last_ms: int) -> None:
    checkpoint = Checkpoint(config.path("checkpoint"), files)
    checkpoint.marks = Marks(physical_ms=last_ms, flushed_offset=end, dispatched_offset=0)
    checkpoint.save(sync=True)
    checkpoint.close()


def _copy_log(
    log: LogFiles, config: StoreConfig, manifest: Manifest, end: int, files: Files, tell: Tell
) -> None:
    files.make_directory(config.log_path)
    copier = LogCopier(log, config.log_path, manifest.file_bytes, files)
    done = 0

    def note(count: int) -> None:
        nonlocal done
        done += count
        tell("copied", done, end - manifest.log_start)

    copier.copy(manifest.log_start, end, note)


def _ends_of_empty_queues(
    log: LogFiles, manifest: Manifest, end: int, deleted: dict[str, int]
) -> dict[str, dict[int, int]]:
    """Where queues ended, should the restored log hold nothing of them."""
    ends = {topic: dict(queues) for topic, queues in manifest.queue_ends.items()}
    for topic, firsts in queues_after(log, end, manifest.log_end).items():
        ends.setdefault(topic, {}).update(firsts)
    return {topic: queues for topic, queues in ends.items() if topic not in deleted}


def _rebuild(
    config: StoreConfig,
    files: Files,
    clock: Clock,
    queue_ends: dict[str, dict[int, int]],
    tell: Tell,
) -> tuple[int, int, int]:
    """Queues and index by a start of the store. Positions set back, topics, time of the newest message."""
    tell("rebuilding queues and index", 0, 0)
    with closing(_open(config, files, clock)) as store:
        empty = [
            (topic, queue_id, end)
            for topic, queues in queue_ends.items()
            for queue_id, end in queues.items()
            if end and not store.max_offset(topic, queue_id)
        ]
    for topic, queue_id, end in empty:
        _write_fillers(config, files, topic, queue_id, end)
    with closing(_open(config, files, clock)) as store:
        offsets = OffsetTable(config.path(TABLES_DIRECTORY), files, clock)
        offsets.load()
        set_back = offsets.cut(store.max_offset)
        offsets.save_if_changed()
        result = set_back, len(store.topics()), store.last_timestamp
    files.remove(config.path(UNFINISHED_RESTORE))
    files.sync_directory(config.root)
    return result


def _open(config: StoreConfig, files: Files, clock: Clock) -> MessageStore:
    store = MessageStore(config, store_host=_NO_HOST, files=files, clock=clock)
    store.load()
    return store


def _write_fillers(config: StoreConfig, files: Files, topic: str, queue_id: int, end: int) -> None:
    """A queue without a message in the log goes on where it ended: groups know its numbers."""
    directory = config.path(f"{QUEUES_DIRECTORY}/{topic}/{queue_id}")
    file_bytes = config.queues.real_file_bytes
    start = (end * ENTRY_BYTES - 1) // file_bytes * file_bytes
    files.make_directory(directory)
    with closing(
        files.create(f"{directory}/{file_name(start)}", file_bytes, allocate=False)
    ) as file:
        for at in range(start, end * ENTRY_BYTES, _FILLERS_AT_ONCE * ENTRY_BYTES):
            count = min(_FILLERS_AT_ONCE, end - at // ENTRY_BYTES)
            file.write_at(at - start, FILLER * count)
        file.sync()
    files.sync_directory(directory)
