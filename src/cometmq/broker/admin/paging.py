"""Pages of a config table, as RocketMQ 5 asks for them; older brokers and tools get everything.

A page is made once per change of the table, however many replicas and tools ask for it, and how often.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from cometmq.broker.table_saver import LargeTable, freshened
from cometmq.protocol import fastjson
from cometmq.protocol.bodies.topic import decode_data_version, encode_data_version
from cometmq.protocol.command import Command
from cometmq.store.meta.config_table import ConfigTable

PAGE_MAX: Final = 2000
KEPT_PAGES_MAX: Final = 32
"""Whoever asks for pages of odd sizes has each of them made anew."""


class PageRequest(NamedTuple):
    """Everything when all three are None."""

    start: int | None
    version_text: str | None
    """The version of the table that ``start`` refers to; a table that changed since starts anew."""
    size: int | None

    @property
    def is_whole(self) -> bool:
        return self.start is None and self.version_text is None and self.size is None


class TablePages:
    """Args:
    others: more parts of the body, by key; as of the table's last change.
    """

    def __init__(
        self, table: ConfigTable[Any], others: Callable[[], dict[str, Any]] | None = None
    ) -> None:
        self._table = table
        self._others = others or dict
        self._pages: dict[tuple[int, int], bytes] = {}
        self._names: Sequence[str] = ()
        self._change_count = -1

    def body(self, asked: PageRequest) -> bytes:
        """The entries from the start on, by name: a JSON object with the table and its version."""
        if self._change_count != self._table.change_count:
            self._change_count = self._table.change_count
            self._names = sorted(self._table.names())
            self._pages = {}
        begin, end = self._range(asked)
        page = self._pages.get((begin, end))
        if page is None:
            page = self._make(self._names[begin:end])
            if len(self._pages) < KEPT_PAGES_MAX:
                self._pages[begin, end] = page
        return page

    def _range(self, asked: PageRequest) -> tuple[int, int]:
        count = len(self._names)
        if asked.is_whole:
            return 0, count
        begin = max(asked.start or 0, 0)
        text = asked.version_text
        if not text or decode_data_version(text.encode()) != self._table.version:
            begin = 0
        begin = min(begin, count)
        size = PAGE_MAX if asked.size is None else min(max(asked.size, 0), PAGE_MAX)
        return begin, min(begin + size, count)

    def _make(self, names: Sequence[str]) -> bytes:
        table = self._table
        parts = {
            "dataVersion": encode_data_version(table.version),
            table.TABLE_KEY: table.rows_of(names),
            **{key: fastjson.dumps(value) for key, value in self._others().items()},
        }
        return (
            b"{"
            + b",".join(b'"%s":%s' % (key.encode(), parts[key]) for key in sorted(parts))
            + b"}"
        )


def when_rendered(table: LargeTable, answer: Callable[[], Command]) -> Command | Awaitable[Command]:
    """What ``answer`` returns, asked for after the table's text was rendered in portions."""
    if table.freshen():
        return _rendered(table, answer)
    return answer()


async def _rendered(table: LargeTable, answer: Callable[[], Command]) -> Command:
    await freshened(table)
    return answer()
