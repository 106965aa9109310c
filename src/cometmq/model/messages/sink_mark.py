"""The mark of a message that a sink wrote: its property ``__SINK`` is ``sink/partition/batch``.

A sink writes batches one after the other, each in partitions that are written in parallel. The unique key of such a
message is derived from the row's content, so that the same row always has the same key.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from cometmq.base.errors import UsageError
from cometmq.model.messages.properties import NAME_SEPARATOR, SINK

ID_CHARS_MAX: Final = 100

_ID = re.compile(r"[A-Za-z0-9_.\-]+\Z")
_MARK = re.compile(
    rb"(?:^|\x02)__SINK\x01([A-Za-z0-9_.\-]{1,100})/([0-9]{1,9})/([0-9]{1,18})(?:\x02|$)"
)
_MARK_START: Final = f"{SINK}{NAME_SEPARATOR}".encode()


class SinkMark(NamedTuple):
    sink: str
    partition: int
    batch: int

    def __str__(self) -> str:
        """The value of the property."""
        return f"{self.sink}/{self.partition}/{self.batch}"


def check_sink_id(sink: str) -> None:
    """Raises UsageError if a string cannot be the id of a sink."""
    if not _ID.match(sink) or len(sink) > ID_CHARS_MAX:
        raise UsageError(
            f"expected a sink id of at most {ID_CHARS_MAX} letters, digits, dots, dashes and underscores, got {sink!r}"
        )


def sink_mark_in(properties: bytes) -> SinkMark | None:
    """The mark in the property text of a record; None if it has no valid one."""
    if _MARK_START not in properties:
        return None
    match = _MARK.search(properties)
    if match is None:
        return None
    return SinkMark(match[1].decode(), int(match[2]), int(match[3]))
