"""Flips a bit in the files of a stopped broker, and says whose message it hit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from tests.chaos.judge.log_compare import records

_ID: Final = re.compile(rb"[0-9a-f]{8} ([a-z]+/[0-9]+/[0-9]+) ")
ENTRY_BYTES: Final = 20


@dataclass(frozen=True, slots=True)
class Flipped:
    """``ids``: of the messages in the record that was hit; none for a queue file, which the log can replace."""

    what: str
    ids: frozenset[str]


def flip_a_bit(store: Path, random: Random) -> Flipped:
    logs = sorted((store / "commitlog").glob("[0-9]*"))
    queues = sorted((store / "consumequeue").glob("*/*/[0-9]*"))
    if queues and random.random() < 0.5:
        file = random.choice(queues)
        written = _entries_end(file.read_bytes())
        kind = "queue"
    else:
        file = random.choice(logs)
        written = max((at + size for at, size in records(file.read_bytes())), default=0)
        kind = "log"
    if not written:
        return Flipped(f"{file.name} has nothing to flip", frozenset())
    position, bit = random.randrange(written), random.randrange(8)
    ids = _hit(file.read_bytes(), position) if kind == "log" else frozenset()
    with file.open("r+b") as target:
        target.seek(position)
        (value,) = target.read(1)
        target.seek(position)
        target.write(bytes([value ^ 1 << bit]))
    place = file.relative_to(store)
    return Flipped(f"bit {bit} of byte {position} in {place}", ids)


def _hit(data: bytes, position: int) -> frozenset[str]:
    for at, size in records(data):
        if at <= position < at + size:
            return frozenset(match.decode() for match in _ID.findall(data[at : at + size]))
    return frozenset()


def _entries_end(data: bytes) -> int:
    end = 0
    while any(data[end : end + ENTRY_BYTES]):
        end += ENTRY_BYTES
    return end
