"""Curves as a picture: one panel for each thing that grows, drawn as SVG by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Final, NamedTuple

RATE_COLOUR: Final = "#c2410c"
DELAY_COLOUR: Final = "#475569"
PANEL_WIDTH: Final = 420
PANEL_HEIGHT: Final = 230
LEFT, RIGHT, TOP, BOTTOM = 64, 64, 34, 40
COLUMNS: Final = 2
GRID_LINES: Final = 4


class Point(NamedTuple):
    x: float
    per_second: float
    p99_ms: float | None


class Panel(NamedTuple):
    title: str
    x_title: str
    points: Sequence[Point]
    y_title: str = "messages/s"


def svg(panels: Sequence[Panel]) -> str:
    """Rates from nought on the left axis, p99 on the right one, what grows on a logarithmic one."""
    rows = math.ceil(len(panels) / COLUMNS)
    width, height = PANEL_WIDTH * min(COLUMNS, len(panels)), PANEL_HEIGHT * rows + 26
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="100%" role="img" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *_legend(),
    ]
    for number, panel in enumerate(panels):
        x, y = number % COLUMNS * PANEL_WIDTH, number // COLUMNS * PANEL_HEIGHT + 26
        parts += [f'<g transform="translate({x} {y})">', *_panel(panel), "</g>"]
    return "\n".join([*parts, "</svg>\n"])


def _legend() -> list[str]:
    parts = []
    for x, colour, text in (
        (12, RATE_COLOUR, "throughput (left)"),
        (150, DELAY_COLOUR, "p99 from request to reply (right)"),
    ):
        parts.append(
            f'<line x1="{x}" y1="14" x2="{x + 18}" y2="14" stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(_text(x + 24, 18, text))
    return parts


def _panel(panel: Panel) -> list[str]:
    points = sorted(panel.points)
    right, bottom = PANEL_WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM
    low, high = math.log10(points[0].x), math.log10(points[-1].x)
    span = high - low or 1.0

    def at(x: float) -> float:
        return LEFT + (math.log10(x) - low) / span * (right - LEFT)

    delays = [point.p99_ms for point in points if point.p99_ms is not None]
    rate_max = _round_up(max(point.per_second for point in points))
    delay_max = _round_up(max(delays, default=1.0))
    parts = [_text(LEFT, 20, panel.title, weight="bold")]
    for number in range(GRID_LINES + 1):
        share = number / GRID_LINES
        y = bottom - share * (bottom - TOP)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#e2e8f0"/>')
        parts.append(_text(LEFT - 6, y + 4, _short(share * rate_max), anchor="end"))
        if delays:
            parts.append(_text(right + 6, y + 4, f"{_short(share * delay_max)} ms"))
    parts += [
        _text(at(point.x), bottom + 15, _short(point.x), anchor="middle", size=9)
        for point in points
    ]
    middle = (LEFT + right) / 2
    parts.append(_text(middle, bottom + 32, f"{panel.x_title}; {panel.y_title}", anchor="middle"))

    def height(value: float, value_max: float) -> float:
        return bottom - value / value_max * (bottom - TOP)

    parts += _line(points, at, lambda p: height(p.per_second, rate_max), RATE_COLOUR)
    timed = [point for point in points if point.p99_ms is not None]
    parts += _line(timed, at, lambda p: height(p.p99_ms or 0.0, delay_max), DELAY_COLOUR)
    return parts


def _line(
    points: Sequence[Point],
    at: Callable[[float], float],
    height: Callable[[Point], float],
    colour: str,
) -> list[str]:
    places = [(at(point.x), height(point)) for point in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in places]
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *dots,
    ]


def _round_up(value: float) -> float:
    """To 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if value <= step * power)


def _short(value: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:.3g}"


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal", size: int = 11
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" '
        f'font-size="{size}" fill="#0f172a">{escape(text)}</text>'
    )
