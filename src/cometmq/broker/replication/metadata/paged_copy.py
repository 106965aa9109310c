"""How a slave reads a config table that may be large, may not have changed at all, or may change while it is read.

The first question names the version that the slave has, and a place behind the end of any table. A master of
RocketMQ 5, and ours, then answer with nothing if that is still the version, and otherwise with the first page of the
new one. Later questions name the version of the first page. A master of RocketMQ 4.9 overlooks all of this and sends
everything at once, without saying how many entries there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.topic import DataVersion

T = TypeVar("T")

PAGE_SIZE: Final = 2000
BEHIND_ALL: Final = 2**31 - 1
ENTRIES_MAX: Final = 1_000_000
RESTARTS_MAX: Final = 5
"""A table that changes more often while it is read has to wait for the next round."""


class PageQuestion(NamedTuple):
    start: int
    version: DataVersion
    size: int = PAGE_SIZE


class Page(NamedTuple, Generic[T]):
    version: DataVersion
    entries: Mapping[str, T]
    total: int | None
    """How many entries the table has; None from a master that sends all of them at once."""


class PagedCopy(Generic[T]):
    """``question`` and ``came`` in turn, until there is no question any more."""

    def __init__(self, version: DataVersion, count: int) -> None:
        self._own = version, count
        self._restarts = 0
        self.entries: dict[str, T] = {}
        """The table, once there is no question."""
        self.is_unchanged = False
        """Whether the slave has it already."""
        self.version = version
        self.question: PageQuestion | None = PageQuestion(BEHIND_ALL, version)

    def came(self, page: Page[T]) -> None:
        """Raises RemoteProtocolError if the table cannot be read."""
        assert self.question is not None
        total = len(page.entries) if page.total is None else page.total
        if not 0 <= total <= ENTRIES_MAX:
            raise RemoteProtocolError(f"a table of {total} entries, at most {ENTRIES_MAX} are read")
        if self._is_probe and (page.version, total) == self._own:
            self.is_unchanged = True
            self.question = None
            return
        if page.version != self.version:
            self._restart(page.version)
        elif not page.entries and not self._is_probe and len(self.entries) < total:
            raise RemoteProtocolError(f"a table of {total} entries ends after {len(self.entries)}")
        self.entries.update(page.entries)
        if len(self.entries) > ENTRIES_MAX:
            raise RemoteProtocolError(f"a table of more than {ENTRIES_MAX} entries")
        is_complete = len(self.entries) >= total
        self.question = None if is_complete else PageQuestion(len(self.entries), page.version)

    @property
    def _is_probe(self) -> bool:
        return self.question is not None and self.question.start == BEHIND_ALL

    def _restart(self, version: DataVersion) -> None:
        self._restarts += 1
        if self._restarts > RESTARTS_MAX:
            raise RemoteProtocolError(f"the table changed {self._restarts} times while it was read")
        self.version = version
        self.entries = {}
