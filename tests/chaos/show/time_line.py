"""A trial as a drawing (SVG): faults as bars, roles of the hosts as bands, elections as lines, sends and deliveries as
curves."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from tests.chaos.judge.elections import Election
from tests.chaos.judge.outcome import Outcome

WIDTH: Final = 1000
LEFT: Final = 90
BAND: Final = 16
CURVES: Final = 110
TICKS: Final = 10
ROLE_COLOURS: Final = {"master": "#2f6f4f", "slave": "#6d9bc3", "up": "#8a8a8a", "down": "#d9534f"}


def draw(outcome: Outcome) -> str:
    length = max(
        len(outcome.sent_by_second),
        len(outcome.delivered_by_second),
        int(outcome.seconds) + 1,
    )
    scale = (WIDTH - LEFT - 10) / length
    parts: list[str] = []
    top = _faults(parts, outcome, scale)
    top = _roles(parts, outcome, scale, top + 6, length)
    highest = max([*outcome.sent_by_second, *outcome.delivered_by_second, 1])
    for series, colour in (
        (outcome.delivered_by_second, "#e08e0b"),
        (outcome.sent_by_second, "#30507a"),
    ):
        parts.append(_curve(series, colour, scale, top + 8, highest))
    parts.append(_text(4, top + 20, "acknowledged", "#30507a"))
    parts.append(_text(4, top + 36, "delivered", "#e08e0b"))
    parts.append(_text(4, top + 52, f"max {highest}/s", "#444"))
    bottom = top + 8 + CURVES
    parts += [_election(election, scale, bottom) for election in outcome.elections]
    for tick in range(TICKS + 1):
        second = length * tick / TICKS
        x = LEFT + second * scale
        parts.append(f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{bottom}" stroke="#0001"/>')
        parts.append(_text(x, bottom + 14, f"{second:.0f} s", "#444"))
    return (
        f'<svg viewBox="0 0 {WIDTH} {bottom + 22}" width="100%" role="img">'
        + "".join(parts)
        + "</svg>"
    )


def _faults(parts: list[str], outcome: Outcome, scale: float) -> int:
    kinds = sorted({fault["kind"] for fault in outcome.inflicted})
    for row, kind in enumerate(kinds):
        y = 4 + row * BAND
        parts.append(_text(4, y + 11, kind, "#444"))
        for fault in outcome.inflicted:
            if fault["kind"] == kind:
                what = (
                    f"{fault['target']} {fault['began']:.1f}-{fault['ended']:.1f} s {fault['note']}"
                )
                parts.append(
                    _bar(
                        fault["began"],
                        fault["ended"],
                        scale,
                        y,
                        "#b03a2e",
                        f"{kind} {what}",
                        fault["target"],
                    )
                )
    return 4 + len(kinds) * BAND


def _roles(parts: list[str], outcome: Outcome, scale: float, top: int, length: float) -> int:
    hosts = sorted({host for _, host, _ in outcome.roles})
    for row, host in enumerate(hosts):
        y = top + row * BAND
        parts.append(_text(4, y + 11, host, "#444"))
        times = [(at, role) for at, its, role in outcome.roles if its == host]
        for (at, role), (until, _) in zip(times, [*times[1:], (length, "")], strict=True):
            # A master may have its epoch beside it.
            colour = ROLE_COLOURS.get(role.partition(" ")[0], "#888")
            parts.append(_bar(at, until, scale, y, colour, f"{host}: {role}", role))
    return top + len(hosts) * BAND


def _election(election: Election, scale: float, bottom: float) -> str:
    at, group, epoch, master = election
    x = LEFT + at * scale
    return (
        f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{bottom}" stroke="#2f6f4f" stroke-dasharray="3 3">'
        f"<title>{escape(f'{group}, epoch {epoch}: {master} elected at {at:.1f} s')}</title></line>"
        + _text(x + 2, bottom - 2, str(epoch), "#2f6f4f")
    )


def _bar(
    began: float, ended: float, scale: float, y: float, colour: str, title: str, label: str
) -> str:
    x, width = LEFT + began * scale, max(2.0, (ended - began) * scale)
    shown = f"{_text(x + 3, y + 10, label, '#fff')}" if width > 8 * len(label) else ""
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAND - 3}" fill="{colour}">'
        f"<title>{escape(title)}</title></rect>{shown}"
    )


def _curve(series: Sequence[int], colour: str, scale: float, top: float, highest: int) -> str:
    points = " ".join(
        f"{LEFT + (second + 0.5) * scale:.1f},{top + CURVES * (1 - value / highest):.1f}"
        for second, value in enumerate(series)
    )
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _text(x: float, y: float, text: str, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="11" fill="{colour}">{escape(text)}</text>'
