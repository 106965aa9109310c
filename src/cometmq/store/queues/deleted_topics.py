"""Which topics were deleted, and where the log ended at that moment.

The records of a deleted topic stay in the log until their file expires. When recovery reads the log, it must not bring
the topic back, nor mix its old queue offsets with those of a new topic of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cometmq.base.errors import CorruptFile
from cometmq.base.ports import Files


class DeletedTopics:
    """``deletedTopics.json`` next to the checkpoint. Owner thread only."""

    def __init__(self, path: str, log_directory: str, files: Files) -> None:
        self._path = path
        self._log_directory = log_directory
        self._files = files
        self._ends: dict[str, int] = {}

    def load(self) -> None:
        try:
            self._ends = decode_deleted(self._files.read(self._path), self._path)
        except FileNotFoundError:
            self._ends = {}

    def note(self, topics: Iterable[str], log_end: int) -> None:
        """Record durably that nothing of these topics below ``log_end`` counts. Raises DiskFull."""
        self._save(self._ends | dict.fromkeys(topics, log_end))

    def prune(self, log_start: int, log_end: int) -> None:
        """Forget topics that the log no longer holds, at either end.

        A power loss may have removed the tail of the log: a new topic's records at the same offsets must count.
        """
        ends = {topic: min(end, log_end) for topic, end in self._ends.items()}
        kept = {topic: end for topic, end in ends.items() if end > log_start}
        if kept != self._ends:
            # A log file that reappears after a power loss would bring its deleted topics back.
            if self._files.exists(self._log_directory):
                self._files.sync_directory(self._log_directory)
            self._save(kept)

    def __bool__(self) -> bool:
        return bool(self._ends)

    def end_of(self, topic: str) -> int:
        """The offset from which records of a topic count."""
        return self._ends.get(topic, 0)

    def by_topic_bytes(self) -> dict[bytes, int]:
        """From the topic, as in a record, to the offset from which it counts."""
        return {topic.encode(): end for topic, end in self._ends.items()}

    def _save(self, ends: dict[str, int]) -> None:
        if ends:
            self._files.replace(self._path, msgspec.json.encode(ends))
        else:
            self._files.remove(self._path)
        # Last, so that what could not be saved is not silently saved with the next change.
        self._ends = ends


def decode_deleted(content: bytes, path: str) -> dict[str, int]:
    """By topic, where the log ended when it was deleted. Raises CorruptFile."""
    try:
        return msgspec.json.decode(content, type=dict[str, int])
    except msgspec.MsgspecError as error:
        raise CorruptFile(
            path,
            f"not a list of deleted topics: {error}",
            "Remove it; topics deleted lately may then come back.",
        ) from None
