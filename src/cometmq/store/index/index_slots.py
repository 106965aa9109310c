"""The slots of an index file: where each chain of entries begins.

Slots are spread over 20 MB, and a key changes one of them: a write for each would cost more than the rest of its
entry. So changed slots are kept in memory, by pages, and pages are written a few at a time. A round covers all pages
that have changed when it starts. When it is finished, the header may count what was added before it started.

A mapping would avoid the copy, but a process that reads a mapped file that somebody truncates is killed.

Thread rule: the owner of the store.
"""

from __future__ import annotations

import sys
from array import array
from itertools import compress
from typing import Final, TypeAlias

from cometmq.base.errors import CorruptFile
from cometmq.base.ports import File

SLOT_BYTES: Final = 4
PAGE_SLOTS: Final = 1024
"""Slots in one page of the file system, counted from the start of the file."""
PAGE_SHIFT: Final = 10
PAGE_MASK: Final = PAGE_SLOTS - 1
PAGES_JOINED_MAX: Final = 64
"""Maximum number of adjacent pages that are written together."""

Page: TypeAlias = "array[int]"


class IndexSlots:
    """Slots are numbered from the start of the file: the first is number ``first``, after the header."""

    __slots__ = ("_end", "_file", "_first", "_is_new", "_round", "changed", "pages")

    def __init__(self, file: File, first: int, count: int, *, is_new: bool) -> None:
        self._file = file
        self._first = first
        self._end = first + count
        # The file contains only zeros, so there is nothing to read.
        self._is_new = is_new
        self._round: list[int] = []
        page_count = (self._end - 1 >> PAGE_SHIFT) + 1
        self.pages: list[Page | None] = [None] * page_count
        """By number; None: not in memory. Code that changes a slot sets its page's byte in ``changed``.

        With many topics, each key is in another page: tables this small stay in the processor's caches."""
        self.changed = bytearray(page_count)

    def get(self, number: int) -> int:
        """One slot, without caching its page. Raises CorruptFile."""
        page = self.pages[number >> PAGE_SHIFT]
        if page is not None:
            return page[number & PAGE_MASK]
        return self._read(number, number + 1)[0]

    def load(self, page_number: int) -> Page:
        """Load a page into memory. Raises CorruptFile."""
        start = page_number * PAGE_SLOTS
        page = self._read(start, min(start + PAGE_SLOTS, self._end))
        self.pages[page_number] = page
        return page

    def begin_round(self) -> int:
        """Take all changed pages, and what is left of an earlier round. Returns the number of pages."""
        for number in self._round:
            self.changed[number] = True
        self._round = [*compress(range(len(self.changed)), self.changed)][::-1]
        self.changed[:] = bytes(len(self.changed))
        return len(self._round)

    def write_part(self, page_count: int) -> bool:
        """Write this many pages of the round. Returns whether it is finished.

        Raises:
            DiskFull: the round is not finished; continue later.
        """
        while self._round and page_count > 0:
            page_count -= self._write_neighbours(min(page_count, PAGES_JOINED_MAX))
        return not self._round

    def forget(self) -> None:
        """Free the memory. Everything must have been written."""
        assert not any(self.changed), self
        assert not self._round, self
        self.pages = [None] * len(self.pages)
        self._is_new = False

    def _write_neighbours(self, count_max: int) -> int:
        """Write the first adjacent pages of what is left of the round. Returns their number."""
        left = self._round
        first = left[-1]
        count = 1
        while count < min(count_max, len(left)) and left[-count - 1] == first + count:
            count += 1
        data = b"".join([_bytes(page) for page in self.pages[first : first + count]])
        start = first * PAGE_SLOTS
        # The header shares a page with slots, and must not be written here.
        skipped = max(self._first - start, 0)
        self._file.write_at((start + skipped) * SLOT_BYTES, data[skipped * SLOT_BYTES :])
        del left[-count:]
        return count

    def _read(self, start: int, end: int) -> Page:
        if self._is_new:
            return array("i", bytes((end - start) * SLOT_BYTES))
        data = self._file.read_at(start * SLOT_BYTES, (end - start) * SLOT_BYTES)
        if len(data) != (end - start) * SLOT_BYTES:
            raise truncated(self._file)
        page = array("i", data)
        if sys.byteorder == "little":
            page.byteswap()
        return page

    def __repr__(self) -> str:
        return f"<IndexSlots pages={len(self.pages)} changed={sum(self.changed)} round={len(self._round)}>"


def truncated(file: File) -> CorruptFile:
    """The error for a file that is shorter than when it was created."""
    return CorruptFile(
        file.path,
        f"shorter than the {file.size_bytes} bytes it had: somebody has truncated it",
        "It is made anew from the log at the next start.",
    )


def _bytes(page: Page | None) -> bytes:
    assert page is not None, "a changed page is in memory"
    if sys.byteorder == "little":
        page = page[:]
        page.byteswap()
    return page.tobytes()
