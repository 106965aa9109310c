"""Takes a backup: tables, then the log up to its end, then a look at what was copied, then the manifest.

The order makes it consistent. Tables never know more than the log that is copied after them, and whatever queues,
index and timers know is in the log. What was copied is read back and checked before the backup counts.

The broker goes on meanwhile. It may delete the oldest files of the log: if it does so before they are copied, the
backup begins behind them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from typing import Final

from cometmq.base.errors import CorruptFile, StoreError
from cometmq.base.ports import Clock
from cometmq.model.messages.checksum import crc32
from cometmq.store.backup.backups import Backups
from cometmq.store.backup.block_sums import block_sums, crc_of
from cometmq.store.backup.copy_log import LogCopier
from cometmq.store.backup.manifest import Manifest, Table, backup_name
from cometmq.store.backup.read_back import QueueEnds, Tell, read_back, stored_ms
from cometmq.store.backup.source import Source
from cometmq.store.files.log_files import LogFileGone

logger = logging.getLogger("cometmq.store")

DAMAGED_MAX: Final = 64
"""Damaged places that a backup notes, as many as a start passes over. More are no rot: the disk is a wrong one."""


def create(
    source: Source,
    backups: Backups,
    clock: Clock,
    *,
    pause: Callable[[], None],
    tell: Tell,
) -> Manifest:
    """Only what is new since the last backup is copied.

    Raises:
        CorruptFile: the log is damaged in more places than a start would pass over.
        DiskFull: no space; the backups before are as they were.
        StoreError: the log is not the continuation of what was backed up, or another backup is under way.
    """
    backups.create()
    with backups.locked():
        backups.remove_unfinished()
        known = backups.all()
        before = known[-1] if known else None
        file_bytes = source.file_bytes()
        taken_ms = max(clock.wall_ms(), before.taken_ms + 1 if before else 0)
        name = backup_name(taken_ms)
        deleted = source.deleted_topics()
        tables = _copy_tables(source, backups, name)
        end = source.find_end(pause)
        if before is not None:
            _check_same_log(source, before, end, file_bytes)
        log_start, start = _copy_log(source, backups, before, end, file_bytes, tell)
        # What this one continues; None behind a gap.
        base = before if before is not None and before.log_end == start else None
        with closing(backups.open_log()) as log:
            found = read_back(log, backups.log_directory, start, end, tell)
            blocks = [one for one in base.blocks if one.start >= log_start] if base else []
            later = source.deleted_topics()
            manifest = Manifest(
                name=name,
                taken_ms=taken_ms,
                log_start=log_start,
                log_end=end,
                file_bytes=file_bytes,
                first_stored_ms=stored_ms(log, log_start, end),
                last_stored_ms=found.last_stored_ms or (base.last_stored_ms if base else 0),
                copied_bytes=end - start,
                blocks=block_sums(log, blocks, start, end, file_bytes),
                tables=tables,
                queue_ends=_queue_ends(
                    source, before, found.queue_ends, deleted.keys() | later.keys()
                ),
                deleted=sorted({*deleted.items(), *later.items()}),
                damaged=_damaged(source, base, log_start, found.damaged),
            )
        backups.add(manifest)
    logger.info(
        "backup created name=%s log_start=%d log_end=%d copied_bytes=%d",
        *(name, manifest.log_start, manifest.log_end, manifest.copied_bytes),
    )
    return manifest


def _copy_tables(source: Source, backups: Backups, name: str) -> list[Table]:
    tables: list[Table] = []
    files, directory = backups.files, backups.tables_of(name)
    files.make_directory(directory)
    for table, content in source.tables():
        path = f"{directory}/{table}"
        files.make_directory(path.rpartition("/")[0])
        files.replace(path, content)
        tables.append(Table(table, len(content), crc32(content)))
    return tables


def _check_same_log(source: Source, before: Manifest, end: int, file_bytes: int) -> None:
    """A store that was cut, restored or made anew goes on differently: it must not be written over older backups."""
    advice = (
        "Was the store restored, or cut because a replica has another log? Back it up into a new directory; what is in "
        "this one stays as it is."
    )
    if file_bytes != before.file_bytes:
        raise StoreError(
            f"{source.root}: expected log files of {before.file_bytes} bytes, as in the backup {before.name}, found "
            f"{file_bytes}. {advice}"
        )
    if end < before.log_end:
        raise StoreError(
            f"{source.root}: expected a log that reaches offset {before.log_end}, as in the backup {before.name}, but "
            f"it ends at {end}. {advice}"
        )
    newest = before.blocks[-1] if before.blocks else None
    if newest is None or newest.start < source.log.start:
        return
    try:
        crc = crc_of(source.log, newest.start, newest.end)
    except LogFileGone:
        return
    if crc != newest.crc:
        raise StoreError(
            f"{source.root}: the log differs from the backup {before.name} between offsets {newest.start} and "
            f"{newest.end}. {advice}"
        )


def _copy_log(
    source: Source,
    backups: Backups,
    before: Manifest | None,
    end: int,
    file_bytes: int,
    tell: Tell,
) -> tuple[int, int]:
    """Where the log of the backup starts, and from where on it was copied."""
    log = source.log
    copier = LogCopier(log, backups.log_directory, file_bytes, backups.files)
    log_start = log.start
    while True:
        has_gap = before is None or before.log_end < log_start
        start = log_start if has_gap else max(log_start, before.log_end if before else 0)
        done = 0

        def note(count: int, total: int = end - start) -> None:
            nonlocal done
            done += count
            tell("copied", done, total)

        try:
            copier.copy(start, end, note)
            return log_start, start
        except LogFileGone as error:
            log.refresh()
            if log.start <= error.physical_offset or not log.starts:
                raise
            logger.warning("log files expired before they were copied new_start=%d", log.start)
            log_start = log.start


def _damaged(
    source: Source, before: Manifest | None, log_start: int, found: list[int]
) -> list[int]:
    """Raises CorruptFile: too many."""
    known = [one for one in before.damaged if one >= log_start] if before else []
    damaged = known + found
    if len(damaged) > DAMAGED_MAX:
        raise CorruptFile(
            source.root,
            f"its log is damaged in more than {DAMAGED_MAX} places, from offset {damaged[0]} on",
            "Check the disk, and back up a replica",
        )
    return damaged


def _queue_ends(
    source: Source, before: Manifest | None, seen: QueueEnds, deleted: set[str]
) -> QueueEnds:
    """Of all queues that there are: from the new records, else as known, else from the queue's own files."""
    known = before.queue_ends if before is not None else {}
    ends: QueueEnds = {topic: dict(queues) for topic, queues in seen.items()}
    for topic, queue_id in source.queues():
        queues = ends.setdefault(topic, {})
        if queue_id in queues:
            continue
        end = None if topic in deleted else known.get(topic, {}).get(queue_id)
        queues[queue_id] = (
            source.queue(topic, queue_id).bounds(source.log).end if end is None else end
        )
    return ends
