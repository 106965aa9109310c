"""Tables: RocketMQ's, column by column as its tool prints them, or fitted to a terminal. No I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_CELL: Final = re.compile(r"%(-?)(\d*)(?:\.\d+)?s")
_GAP: Final = "  "
_LEAST: Final = 8
"""Characters that a column keeps when a table is too wide for the terminal."""

BOLD, RED, YELLOW, RESET = "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[0m"

_BAD: Final = frozenset(
    {"OFFLINE", "Fall", "Failed", "NO_CONSUMER", "NOT_ONLINE", "disable", "DENY", "Deny"}
)
_BACKLOG: Final = frozenset({"#Diff", "#Diff Total", "#Accumulation"})


@dataclass(frozen=True, slots=True)
class Layout:
    """``titles`` and the formats of RocketMQ's tool, such as ``%-32s  %-4s  %s``; Python reads them as Java does.

    ``%-32.32s`` cuts what is too long. Rows are formatted as the head is, unless they have a format of their own.
    """

    titles: tuple[str, ...]
    head: str
    row: str = ""

    def head_line(self) -> str:
        return self.head % self.titles

    def line(self, cells: Sequence[str]) -> str:
        return (self.row or self.head) % tuple(cells)


def fitted(
    layout: Layout, rows: Sequence[Sequence[str]], width: int, *, has_colour: bool
) -> list[str]:
    """Columns as wide as what is in them; the widest give way if a line would be wider than the terminal."""
    lines = [layout.titles, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(layout.titles))]
    _shrink(widths, width - len(_GAP) * (len(widths) - 1))
    is_left = [
        match[1] == "-" or not match[2] for match in _CELL.finditer(layout.row or layout.head)
    ]
    shown = []
    for number, line in enumerate(lines):
        cells = []
        for text, space, left, title in zip(line, widths, is_left, layout.titles, strict=True):
            cut = text if len(text) <= space else text[: space - 1] + "…"
            padded = cut.ljust(space) if left else cut.rjust(space)
            colour = (BOLD if number == 0 else _colour(title, text)) if has_colour else ""
            cells.append(f"{colour}{padded}{RESET}" if colour else padded)
        shown.append(_GAP.join(cells).rstrip())
    return shown


def _shrink(widths: list[int], room: int) -> None:
    while sum(widths) > room:
        widest = max(range(len(widths)), key=widths.__getitem__)
        if widths[widest] <= _LEAST:
            return
        widths[widest] -= 1


def _colour(title: str, text: str) -> str:
    if text.split(" ")[0] in _BAD:
        return RED
    if title in _BACKLOG and text.strip("-").isdigit() and int(text) > 0:
        return YELLOW
    return ""
