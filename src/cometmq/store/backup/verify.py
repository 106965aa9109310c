"""Is a backup whole? Every byte of it is read: log by blocks and by records, tables by their checksums."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from cometmq.model.messages.checksum import crc32
from cometmq.store.backup.backups import Backups
from cometmq.store.backup.block_sums import crc_of
from cometmq.store.backup.log_check import LogCheck
from cometmq.store.backup.manifest import Block, Manifest
from cometmq.store.backup.read_back import Tell
from cometmq.store.files.log_files import LogFileGone, LogFiles


class Verdict(NamedTuple):
    """Faults in words, each with its place. ``records`` were looked at."""

    faults: list[str]
    records: int


def verify(backups: Backups, manifest: Manifest, tell: Tell) -> Verdict:
    faults = _faults_of_tables(backups, manifest)
    with closing(backups.open_log()) as log:
        faults += _missing_blocks(manifest)
        for block in manifest.blocks:
            if fault := fault_of(log, block):
                faults.append(fault)
            tell("read", block.end - manifest.log_start, manifest.log_end - manifest.log_start)
        records, found = _faults_of_records(log, manifest, tell)
    return Verdict(faults + found, records)


def fault_of(log: LogFiles, block: Block) -> str:
    """Empty for a block that is as it was backed up."""
    try:
        path, at = log.place_of(block.start)
        crc = crc_of(log, block.start, block.end)
    except LogFileGone as error:
        return f"no file of the backup holds offset {error.physical_offset} of the log"
    if crc == block.crc:
        return ""
    stop = at + block.end - block.start
    return f"{path}: damaged between bytes {at} and {stop} (offsets {block.start} to {block.end})"


def _faults_of_tables(backups: Backups, manifest: Manifest) -> list[str]:
    faults: list[str] = []
    for table in manifest.tables:
        path = f"{backups.tables_of(manifest.name)}/{table.name}"
        try:
            content = backups.files.read(path)
        except FileNotFoundError:
            faults.append(f"{path}: missing")
            continue
        if (len(content), crc32(content)) != (table.size_bytes, table.crc):
            faults.append(f"{path}: not what was backed up")
    return faults


def _missing_blocks(manifest: Manifest) -> list[str]:
    at = manifest.log_start
    for block in manifest.blocks:
        if block.start != at:
            break
        at = block.end
    if at == manifest.log_end:
        return []
    return [f"the manifest of {manifest.name} knows no block at offset {at} of the log"]


def _faults_of_records(log: LogFiles, manifest: Manifest, tell: Tell) -> tuple[int, list[str]]:
    check = LogCheck(log, manifest.log_start, manifest.log_end)
    records = 0
    try:
        for record in check:
            records += 1
            done = record.physical_offset - manifest.log_start
            tell("checked", done, manifest.log_end - manifest.log_start)
    except LogFileGone:
        # Told by its block.
        return records, []
    known = set(manifest.damaged)
    bad = [one for one in (*check.bad, *check.unfollowed) if one.start not in known]
    return records, [_bad_text(log, one.start, one.end) for one in bad]


def _bad_text(log: LogFiles, start: int, end: int) -> str:
    path, at = log.place_of(start)
    return f"{path}: no sound record at byte {at} (offsets {start} to {end})"
