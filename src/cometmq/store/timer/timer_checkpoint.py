"""The guaranteed state of the timer index: ``timer/checkpoint``.

The index is derived from the log, so losing it only costs time. A checkpoint says what need not be rebuilt:

- the entries of all records of the timer topic before ``queue_end`` are in the lanes' buckets, ``counts`` in each;
- all messages of a lane up to its ``done`` were delivered, and their copies are in the log before ``log_end``.
"""

from __future__ import annotations

import logging

import msgspec

from cometmq.base.ports import Files
from cometmq.store.timer.entry import START, Position

logger = logging.getLogger("cometmq.store")


class LaneState(msgspec.Struct, frozen=True, rename="camel"):
    """The messages that wait for one clock; number 0 is the wall clock."""

    number: int
    done: Position = START
    counts: dict[int, int] = {}
    """Entries by bucket."""
    now_ms: int = 0
    """The time on its clock."""
    ahead_ms: int = 0
    """How far its clock was ahead of the wall clock."""


class TimerCheckpoint(msgspec.Struct, frozen=True, rename="camel"):
    lanes: list[LaneState]
    queue_end: int = 0
    log_end: int = 0
    peer: str = ""
    """Fingerprint of RocketMQ's own timer checkpoint file, when we last read or wrote it."""

    @property
    def has_entries(self) -> bool:
        return any(lane.counts for lane in self.lanes)


class CheckpointFile:
    def __init__(self, directory: str, files: Files) -> None:
        self._path = f"{directory}/checkpoint"
        self._files = files

    def load(self) -> TimerCheckpoint | None:
        """None if there is none, or none that can be read."""
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
