"""Offsets that groups committed at a slave, until its master has them: ``config/strayOffsets.json``, our own file.

While a master is away, its consumers read from a slave and commit there. RocketMQ overwrites that with the master's
older table as soon as the master is back, and the groups read everything again. Here the slave notes such commits and
hands those to the master that are ahead of what it has. Belongs to the event loop; what ``unsaved`` returns may run in
a worker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from cometmq.base.ports import Files
from cometmq.store.meta.json_file import BadContent, JsonFile

log = logging.getLogger("cometmq.broker")

COMMITS_MAX: Final = 100_000


class Place(NamedTuple):
    group: str
    topic: str
    queue_id: int


class Commit(NamedTuple):
    place: Place
    offset: int


class _Content(msgspec.Struct):
    commits: list[tuple[str, str, int, int]]


class StrayCommits:
    def __init__(self, directory: str, files: Files) -> None:
        self._directory = directory
        self._files = files
        self._file = JsonFile(f"{directory}/strayOffsets.json", files)
        self._offsets: dict[Place, int] = {}
        self._change_count = self._saved_count = 0
        self._is_full = False

    def load(self) -> None:
        """Raises CorruptFile when neither the file nor its backup can be read."""
        self._files.make_directory(self._directory)
        content = self._file.load(_read)
        if content is not None:
            self._offsets = {
                Place(group, topic, queue_id): offset
                for group, topic, queue_id, offset in content.commits
            }

    def __len__(self) -> int:
        return len(self._offsets)

    def note(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """A group has committed here."""
        place = Place(group, topic, queue_id)
        if place not in self._offsets and len(self._offsets) >= COMMITS_MAX:
            if not self._is_full:
                self._is_full = True
                log.warning(
                    "commits at this slave are not kept for the master: there are %d already; group=%s topic=%s",
                    COMMITS_MAX,
                    group,
                    topic,
                )
            return
        self._offsets[place] = offset
        self._change_count += 1

    def forget_all(self) -> None:
        """This broker is the master itself."""
        if self._offsets:
            self._offsets = {}
            self._change_count += 1

    def portions(self, size: int) -> Iterator[list[Commit]]:
        """All that there are now; each portion as of when it is asked for, without those that are done by then."""
        places = list(self._offsets)
        for first in range(0, len(places), size):
            yield [
                Commit(place, offset)
                for place in places[first : first + size]
                if (offset := self._offsets.get(place)) is not None
            ]

    def settle(
        self, commits: Iterable[Commit], table: Mapping[str, Mapping[int, int]]
    ) -> list[Commit]:
        """Those that are ahead of the master's table, by ``topic@group``; the others are done and forgotten."""
        ahead: list[Commit] = []
        for commit in commits:
            place = commit.place
            known = table.get(f"{place.topic}@{place.group}", {}).get(place.queue_id, -1)
            if commit.offset > known:
                ahead.append(commit)
            else:
                self.done(commit)
        self._is_full = False
        return ahead

    def done(self, commit: Commit) -> None:
        """The master has it, or does not want it. One that came later stays."""
        if self._offsets.get(commit.place) == commit.offset:
            del self._offsets[commit.place]
            self._change_count += 1

    def unsaved(self) -> Callable[[], None] | None:
        """A save of what there is now, for a worker thread; None if nothing changed."""
        if self._change_count == self._saved_count:
            return None
        offsets = self._offsets.copy()
        changes = self._change_count

        def write() -> None:
            rows = [(*place, offset) for place, offset in offsets.items()]
            self._file.save(msgspec.json.encode(_Content(rows)))
            self._saved_count = changes

        return write


def _read(content: dict[str, Any]) -> _Content:
    try:
        return msgspec.convert(content, _Content)
    except msgspec.ValidationError as error:
        raise BadContent(str(error)) from None
