"""A snapshot as lines of text that fit a terminal. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cometmq.admin import GroupSummary
from cometmq.cli.top.snapshot import WAIT_FIGURE, BrokerNow, Changes, Snapshot

NOT_TOLD: Final = "-"
NAME_WIDTH_MIN: Final = 12


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    width: int
    is_left: bool = False


BROKERS: Final = (
    Column("BROKER", 20, True),
    Column("ID", 3),
    Column("ADDRESS", 21, True),
    Column("VERSION", 8, True),
    Column("IN/s", 9),
    Column("OUT/s", 9),
    Column("WAIT ms", 8),
    Column("DISK", 5),
    Column("UNFLUSHED", 10),
    Column("SLAVES", 7),
    Column("BEHIND KiB", 10),
)
GROUPS: Final = (
    Column("GROUP", 40, True),
    Column("MEMBERS", 8),
    Column("OUT/s", 9),
    Column("LAG", 14),
    Column("CHANGE/s", 10),
)


def frame(
    title: str, before: Snapshot | None, now: Snapshot, *, width: int, height: int
) -> list[str]:
    """Brokers, then groups with the largest lag first, as many as there is room for."""
    changes = Changes(before, now)
    lines = [title, ""]
    lines += _table(BROKERS, [_broker_cells(one, changes) for one in now.brokers], width)
    lines += [f"  {address}: {reason}" for address, reason in now.failed.items()]
    lines.append("")
    ordered = sorted(now.groups, key=lambda one: (-one.lag, -one.members, one.group))
    # The table's own title, and the line that tells what is left out.
    room = max(height - len(lines) - 2, 1)
    lines += _table(GROUPS, [_group_cells(one, changes) for one in ordered[:room]], width)
    if (left := len(ordered) - room) > 0:
        lines.append(f"and {left:,} groups with less lag")
    return [line[:width].rstrip() for line in lines][:height]


def _broker_cells(broker: BrokerNow, changes: Changes) -> list[str]:
    place, figures, replicas = broker.place, broker.figures, broker.replicas
    cells = [place.broker_name, str(place.broker_id), place.address]
    if figures is None:
        return [*cells, "no answer"]
    return [
        *cells,
        figures.version,
        _rate(changes.put_rate(broker)),
        _rate(changes.get_rate(broker)),
        str(figures.number(WAIT_FIGURE)),
        f"{figures.disk_ratio:.0%}",
        figures.table.get("remainHowManyDataToFlush", NOT_TOLD),
        NOT_TOLD if replicas is None else f"{replicas.in_sync}/{replicas.following}",
        NOT_TOLD if replicas is None else f"{replicas.behind_bytes / 1024:,.0f}",
    ]


def _group_cells(group: GroupSummary, changes: Changes) -> list[str]:
    return [
        group.group,
        str(group.members) if group.members else "offline",
        _rate(group.tps),
        f"{group.lag:,}",
        _rate(changes.lag_rate(group), signed=True),
    ]


def _rate(rate: float | None, *, signed: bool = False) -> str:
    if rate is None:
        return NOT_TOLD
    return f"{rate:+,.1f}" if signed else f"{rate:,.1f}"


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """The first column gives way on a narrow terminal, and takes what longer names need on a wide one."""
    others = sum(column.width + 1 for column in columns[1:])
    longest = max((len(row[0]) for row in rows), default=0)
    name_width = max(NAME_WIDTH_MIN, min(max(longest, columns[0].width), width - others))
    fitted = [Column(columns[0].title, name_width, True), *columns[1:]]
    titles = [column.title for column in columns]
    return [_line(fitted, cells) for cells in (titles, *rows)]


def _line(columns: Sequence[Column], cells: Sequence[str]) -> str:
    parts = []
    for column, cell in zip(columns, cells, strict=False):
        text = cell if len(cell) <= column.width else f"{cell[: column.width - 1]}…"
        parts.append(text.ljust(column.width) if column.is_left else text.rjust(column.width))
    return " ".join(parts)
