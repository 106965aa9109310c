"""Filter, sort and page, as all lists do it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from cometmq.dashboard.bodies.common import Page, PageQuery
from cometmq.dashboard.problems import bad_request
from cometmq.dashboard.watch.snapshot import Snapshot

T = TypeVar("T", bound=msgspec.Struct)


def matches(name: str, part: str) -> bool:
    """Letter case does not matter."""
    return part.lower() in name.lower()


def page_of_rows(
    rows: Sequence[T], query: PageQuery, snapshot: Snapshot, *, sort: str, kind: type[T]
) -> Page[T]:
    """
    Args:
        sort: unless the query says otherwise.
    """
    ordered = in_order(rows, query.sort or sort, kind)
    first = (query.page - 1) * query.size
    return Page(
        as_of_ms=snapshot.at_ms,
        incomplete=list(snapshot.gaps),
        rows=ordered[first : first + query.size],
        total=len(rows),
        page=query.page,
        size=query.size,
    )


def in_order(rows: Iterable[T], sort: str, kind: type[T]) -> list[T]:
    """Sorted by a field; what is not known comes last. Raises Problem: no such field."""
    field = sort.removeprefix("-")
    if field not in kind.__struct_fields__:
        fields = ", ".join(kind.__struct_fields__)
        raise bad_request(f"rows have no field {field!r}; they have {fields}", field="sort")
    known = [row for row in rows if getattr(row, field) is not None]
    unknown = [row for row in rows if getattr(row, field) is None]
    known.sort(key=lambda row: _key(getattr(row, field)), reverse=sort.startswith("-"))
    return known + unknown


def _key(value: Any) -> Any:
    return len(value) if isinstance(value, list | dict) else value
