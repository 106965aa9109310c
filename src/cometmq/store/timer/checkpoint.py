"""What the timer index knows for certain: ``timer/checkpoint``.

The index is made from the log, so losing it costs time and nothing else. A checkpoint says what need not be made again:

- the entries of all records before ``queue_offset`` of the timer topic are in the buckets, ``counts`` in each;
- all of them up to ``done`` were delivered, and their copies are in the log before ``log_offset``.
"""

from __future__ import annotations

import logging

import msgspec

from cometmq.base.ports import Files
from cometmq.store.timer.entry import START, Position

logger = logging.getLogger("cometmq.store")


class TimerCheckpoint(msgspec.Struct, frozen=True, rename="camel"):
    done: Position = START
    queue_offset: int = 0
    log_offset: int = 0
    counts: dict[int, int] = {}
    """Entries by bucket."""
    peer: str = ""
    """Fingerprint of the file in which RocketMQ keeps its own timer checkpoint, when we last saw or wrote it."""


class CheckpointFile:
    def __init__(self, directory: str, files: Files) -> None:
        self._path = f"{directory}/checkpoint"
        self._files = files

    def load(self) -> TimerCheckpoint | None:
        """None when there is none, or none that can be read."""
        try:
            return msgspec.json.decode(self._files.read(self._path), type=TimerCheckpoint)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            logger.warning(
                "timer checkpoint unreadable path=%s error=%s; the index is made anew from the log",
                self._path,
                error,
            )
            return None

    def save(self, checkpoint: TimerCheckpoint) -> None:
        """Replace it, durably. Raises DiskFull."""
        self._files.replace(self._path, msgspec.json.encode(checkpoint))
