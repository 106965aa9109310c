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
    message may be delivered, ``fate`` how a transaction ends. ``broker`` and ``position`` are the address of who
    stored it, and where in its log."""

    workload: str
    id: str
    began: float
    ended: float
    status: str
    queue: Queue | None = None
    offset: int = -1
    fate: str = COMMITTED
    due: float = 0.0
    broker: str = ""
    position: int = -1


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


class Sighting(NamedTuple):
    """What a controller said of a group, or a broker of itself while it was its master. ``master`` is an address, empty
    if there is none."""

    at: float
    host: str
    group: str
    epoch: int
    master: str
    is_controller: bool


class Reign(NamedTuple):
    """From where on a log is of an epoch."""

    epoch: int
    start: int


class Bound(NamedTuple):
    """What happened between two moments must not keep sends from being acknowledged for longer than ``seconds``."""

    began: float
    ended: float
    what: str
    seconds: float


@dataclass
class History:
    """One run. ``stored`` are the ids found in the logs at the end, by workload. ``damaged`` are the ids whose only
    copy a fault has destroyed on purpose. ``diverged`` says which replicas differ, and where. ``reigns`` are those of
    the log of each group that controllers elect in, at the end. ``unexpected`` is what clients must not raise."""

    sends: list[Send] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    stored: dict[str, set[str]] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)
    diverged: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    reigns: dict[str, list[Reign]] = field(default_factory=dict)
    bounds: list[Bound] = field(default_factory=list)


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
