"""The table as a picture: bars relative to one system, written as SVG by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from benchmarks.compare.cases import RIVAL
from benchmarks.compare.outcome import Row

COLOURS = ("#c2410c", "#475569", "#94a3b8", "#0f766e")
LABEL_WIDTH = 400
UNIT_WIDTH = 150  # one time the reference
RATIO_MAX = 3.2
BAR_HEIGHT = 11
ROW_GAP = 9
VALUE_WIDTH = 150
TOP = 66


def svg(rows: Iterable[Row], systems: Sequence[str]) -> str:
    """One group of bars for each row that has a figure of the reference, more-is-better rows first."""
    reference = RIVAL if RIVAL in systems else systems[0]
    drawn = [row for row in rows if row.median(reference)]
    drawn.sort(key=lambda row: row.lower_is_better)
    width = LABEL_WIDTH + int(UNIT_WIDTH * RATIO_MAX) + VALUE_WIDTH
    parts: list[str] = []
    y = TOP
    is_lower: bool | None = None
    for row in drawn:
        if row.lower_is_better is not is_lower:
            is_lower = row.lower_is_better
            text = "less is better" if is_lower else "more is better"
            parts.append(_text(12, y + 12, text, weight="bold"))
            y += 24
        parts += _group(row, systems, reference, y)
        y += BAR_HEIGHT * len(systems) + ROW_GAP
    line = LABEL_WIDTH + UNIT_WIDTH
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + 12}" '
        f'viewBox="0 0 {width} {y + 12}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{y + 12}" fill="#ffffff"/>',
        _text(12, 22, f"Relative to {reference} (dashed line = 1.0)", weight="bold"),
        *_legend(systems),
        f'<line x1="{line}" y1="{TOP}" x2="{line}" y2="{y}" stroke="#94a3b8" stroke-dasharray="3 3"/>',
    ]
    return "\n".join([*head, *parts, "</svg>\n"])


def _group(row: Row, systems: Sequence[str], reference: str, y: int) -> list[str]:
    base = row.median(reference)
    assert base
    middle = y + BAR_HEIGHT * len(systems) // 2 + 4
    parts = [_text(LABEL_WIDTH - 8, middle, row.title, anchor="end")]
    for number, system in enumerate(systems):
        value = row.median(system)
        if value is None:
            continue
        length = UNIT_WIDTH * min(value / base, RATIO_MAX)
        top = y + number * BAR_HEIGHT
        parts.append(
            f'<rect x="{LABEL_WIDTH}" y="{top}" width="{length:.1f}" height="{BAR_HEIGHT - 1}" '
            f'fill="{COLOURS[number % len(COLOURS)]}"/>'
        )
        label = f"{value:,.0f} {row.unit}" if value >= 10 else f"{value:.2f} {row.unit}"
        if value / base > RATIO_MAX:
            label += f" (cut: {value / base:.1f} x)"
        parts.append(_text(LABEL_WIDTH + length + 4, top + 9, label, size=9))
    return parts


def _legend(systems: Sequence[str]) -> list[str]:
    parts = []
    for number, system in enumerate(systems):
        x = 12 + number * 150
        parts.append(
            f'<rect x="{x}" y="34" width="12" height="12" fill="{COLOURS[number % len(COLOURS)]}"/>'
        )
        parts.append(_text(x + 18, 44, system))
    return parts


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal", size: int = 12
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" '
        f'font-size="{size}" fill="#0f172a">{escape(text)}</text>'
    )
