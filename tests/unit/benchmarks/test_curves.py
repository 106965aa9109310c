"""Curves are drawn to scale."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from benchmarks.growth import curves
from benchmarks.parts.curves import Panel, Point, svg

SVG = "{http://www.w3.org/2000/svg}"
RISING = Panel(
    "a & b", "things", [Point(1, 1000, 2.0), Point(100, 2000, None), Point(10, 500, 8.0)]
)


def _lines(text: str) -> list[list[tuple[float, float]]]:
    found = ElementTree.fromstring(text).iter(f"{SVG}polyline")
    return [
        [
            (float(x), float(y))
            for x, y in (pair.split(",") for pair in one.attrib["points"].split())
        ]
        for one in found
    ]


def test_a_point_is_where_its_figures_say() -> None:
    rate, delay = _lines(svg([RISING]))
    (first, middle, last) = rate
    assert middle[0] - first[0] == pytest.approx(last[0] - middle[0], abs=0.2), "logarithmic"
    # From nought: half of the rate is half of the height.
    height = middle[1] - last[1]
    assert first[1] - last[1] == pytest.approx(height * 1000 / 1500, abs=0.2)
    assert len(delay) == 2
    assert delay[0][1] > delay[1][1]


def test_a_single_point_and_one_of_nothing_are_drawn() -> None:
    text = svg([Panel("one", "x", [Point(5, 0, 0.0)])])
    assert len(_lines(text)) == 2


def test_titles_are_escaped() -> None:
    assert "a &amp; b" in svg([RISING])
    assert re.search(r"<text[^>]*>things; messages/s</text>", svg([RISING]))


def test_the_backlog_is_as_large_as_there_is_room() -> None:
    assert max(curves(4)["backlog"].steps) == 2
    assert curves(0.1)["backlog"].steps == [0.1]
    assert max(curves(20)["backlog-pulls"].steps) == 20
