"""Pages of a config table, as tools of RocketMQ 5 ask for them; older ones get everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from cometmq.model.topic import DataVersion
from cometmq.protocol.bodies.topic import decode_data_version

V = TypeVar("V")

PAGE_MAX: Final = 2000


def page(
    table: Mapping[str, V],
    start: int | None,
    version_text: str | None,
    count: int | None,
    version: DataVersion,
) -> dict[str, V]:
    """The entries from ``start`` on, by name. A table that changed since the first page starts anew."""
    if start is None and version_text is None and count is None:
        return dict(table)
    if not version_text or decode_data_version(version_text.encode()) != version:
        start = 0
    begin = max(start or 0, 0)
    size = PAGE_MAX if count is None else min(max(count, 0), PAGE_MAX)
    return {name: table[name] for name in sorted(table)[begin : begin + size]}
