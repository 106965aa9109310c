"""The rows of a table as text, in the form of its file; rendered again only after a change, and a few at a time.

To render is by far the largest part of a save, and of what a replica is told. Ten thousand rows at once would hold up
everybody else, so an owner with an event loop calls ``freshen`` again and again before it asks for the text, and lets
others have their turn in between. Whatever is still stale then is rendered with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from cometmq.store.meta.json_file import pretty

ROWS_AT_ONCE: Final = 50
"""Rows that one call renders: about a millisecond."""

_DEPTH: Final = 2
_INDENT: Final = "\n" + "\t" * _DEPTH


class RenderedRows:
    """Args: value_of: the value of a row, by name; it has one as long as ``removed`` was not called."""

    def __init__(self, value_of: Callable[[str], Any]) -> None:
        self._value_of = value_of
        self._rows: dict[str, str] = {}
        self._stale: set[str] = set()
        self.change_count = 0
        """Grows with every change."""

    @property
    def is_fresh(self) -> bool:
        return not self._stale

    def changed(self, name: str) -> None:
        self._stale.add(name)
        self.change_count += 1

    def removed(self, name: str) -> None:
        self._stale.discard(name)
        self._rows.pop(name, None)
        self.change_count += 1

    def restart(self, names: Iterable[str]) -> None:
        """All of these changed, and there are no others."""
        self._rows = {}
        self._stale = set(names)
        self.change_count += 1

    def freshen(self, count_max: int = ROWS_AT_ONCE) -> bool:
        """Render some rows. Whether there are more to render."""
        for _ in range(min(count_max, len(self._stale))):
            name = self._stale.pop()
            self._rows[name] = f"{_INDENT}{pretty(name)}:{pretty(self._value_of(name), _DEPTH)}"
        return bool(self._stale)

    def rows(self, names: Iterable[str]) -> list[str]:
        """The rows of ``names``, which stay as they are now; for ``table_text``."""
        while self.freshen():
            pass
        return list(map(self._rows.__getitem__, names))


def table_text(rows: list[str]) -> str:
    """A table in its file. To join ten thousand rows takes some milliseconds, and a worker thread can do it."""
    return f"{{{','.join(rows)}\n\t}}" if rows else "{}"


def one_line(text: str) -> bytes:
    """A table's text as it is sent: without the line breaks and tabs, which inside of strings are escaped."""
    return text.encode().translate(None, b"\n\t")
