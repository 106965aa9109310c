"""The epochs of a log on disk, in RocketMQ's file (``epochFileCheckpoint``).

    line 1      number of entries
    line 2      CRC-32 of the entries with their line ends, without its highest bit; 0: not checked
    then        epoch-startOffset, one a line

Beside it lies ``.bak`` with the text before the last change, which is read when the file is damaged. A change is on
disk when it returns: no record of a reign may be there before the reign is noted.
"""

from __future__ import annotations

import logging
from typing import Final

from cometmq.base.errors import CorruptFile, UsageError
from cometmq.base.ports import Files
from cometmq.broker.replication.autoswitch.epochs import Epoch, EpochTable
from cometmq.model.messages.checksum import crc32

logger = logging.getLogger("cometmq.broker")

CRC_MASK: Final = 0x7FFFFFFF
BACKUP_SUFFIX: Final = ".bak"


def encode_epochs(table: EpochTable) -> bytes:
    lines = "".join(f"{entry.number}-{entry.start}\n" for entry in table).encode()
    return b"%d\n%d\n%b" % (len(table), crc32(lines) & CRC_MASK, lines)


def decode_epochs(content: bytes) -> EpochTable:
    """Raises ValueError: it is no such text, or damaged."""
    count_line, crc_line, *lines = content.decode("ascii").splitlines()
    entries = [line for line in lines if line]
    if len(entries) != int(count_line):
        raise ValueError(f"expected {count_line} epochs, found {len(entries)}")
    checksum = crc32("".join(f"{line}\n" for line in entries).encode()) & CRC_MASK
    if int(crc_line) not in (0, checksum):
        raise ValueError(f"expected the checksum {crc_line}, found {checksum}")
    return EpochTable(_entry(line) for line in entries)


class EpochFile:
    """The epochs of this broker's log. ``load`` it once."""

    def __init__(self, path: str, files: Files) -> None:
        self._path = path
        self._files = files
        self.table = EpochTable()

    def load(self, log_start: int, log_end: int) -> None:
        """Read what is there, as far as the log goes: a power loss may have taken the end of the log.

        Raises:
            CorruptFile: neither the file nor the one before it can be read.
        """
        self.table = self._read()
        if self.table.fit(log_end):
            logger.warning("epochs behind the end of the log dropped log_end=%d", log_end)
        self.table.drop_before(log_start)

    def begin(self, epoch: Epoch) -> None:
        """A reign begins, here or at the master that is followed. Raises UsageError, DiskFull."""
        changed = EpochTable(self.table)
        if changed.begin(epoch):
            self._replace(changed)
            logger.info("epoch begins epoch=%d start=%d", epoch.number, epoch.start)

    def cut(self, end: int) -> None:
        """The log was cut at ``end``. Raises DiskFull."""
        changed = EpochTable(self.table)
        if changed.cut(end):
            self._replace(changed)

    def drop_before(self, start: int) -> None:
        """Older files of the log were deleted. Raises DiskFull."""
        changed = EpochTable(self.table)
        if changed.drop_before(start):
            self._replace(changed)

    def _replace(self, table: EpochTable) -> None:
        if self._files.exists(self._path):
            self._files.replace(self._path + BACKUP_SUFFIX, self._files.read(self._path))
        self._files.replace(self._path, encode_epochs(table))
        self.table = table

    def _read(self) -> EpochTable:
        paths = (self._path, self._path + BACKUP_SUFFIX)
        reason: Exception | None = None
        for path in paths:
            if not self._files.exists(path):
                continue
            content = self._files.read(path)
            if not content and path == self._path:
                continue
            try:
                return decode_epochs(content)
            except (ValueError, UsageError) as error:
                logger.error("epochs not read path=%s reason=%s", path, error)
                reason = reason or error
        if reason is not None:
            raise CorruptFile(
                self._path,
                str(reason),
                "Without it nobody can tell which part of the log is whose. Empty this store, so that it copies its "
                "master's",
            )
        return EpochTable()


def _entry(line: str) -> Epoch:
    number, _, start = line.partition("-")
    return Epoch(int(number), int(start))
