"""What the workloads did and saw, as plain records. A body tells its own id and whether it is intact."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Final, NamedTuple

ACKNOWLEDGED: Final = "SEND_OK"
FAILED: Final = "failed"
COMMITTED, ROLLED_BACK = "commit", "rollback"

Queue = tuple[str, int]
"""A broker's name and the number of one of its queues."""


class Send(NamedTuple):
    """``status`` as the client says it, or ``failed``: then the message may be stored or not. ``due`` is when a delayed
    message may be delivered, ``fate`` how a transaction ends."""

    workload: str
    id: str
    began: float
    ended: float
    status: str
    queue: Queue | None = None
    offset: int = -1
    fate: str = COMMITTED
    due: float = 0.0


class Delivery(NamedTuple):
    """``id`` is empty if the body is not one of ours."""

    workload: str
    id: str
    is_intact: bool
    at: float
    queue: Queue
    offset: int


class Position(NamedTuple):
    """A group's committed offset: as a commit was confirmed, or as it was read."""

    at: float
    queue: Queue
    offset: int
    is_read: bool


@dataclass
class History:
    """One run. ``stored`` are the ids found in the logs at the end, by workload. ``damaged`` are the ids whose only
    copy a fault has destroyed on purpose. ``diverged`` says which replicas differ, and where."""

    sends: list[Send] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    stored: dict[str, set[str]] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)
    diverged: list[str] = field(default_factory=list)


def make_body(id: str, filler: bytes) -> bytes:
    """Raises ValueError for an id with a space."""
    if " " in id:
        raise ValueError(f"an id has no space: {id!r}")
    content = id.encode() + b" " + filler
    return b"%08x " % zlib.crc32(content) + content


def read_body(body: bytes) -> tuple[str, bool]:
    """The id, and whether the body is as it was made."""
    checksum, _, content = body.partition(b" ")
    id, _, _ = content.partition(b" ")
    try:
        text = id.decode()
        is_intact = int(checksum, 16) == zlib.crc32(content)
    except ValueError:
        return "", False
    return text, is_intact
