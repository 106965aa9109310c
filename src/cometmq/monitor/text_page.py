"""Families as text, in Prometheus' format 0.0.4 or as OpenMetrics 1.0.0.

Lines come in portions of about a millisecond's work: with many groups a page is long, and others are to be served
between. Written here rather than by ``prometheus-client``: see docs/decisions/0039-metrics-and-health.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from cometmq.monitor.family import OVERFLOW, Family, Histogram, Kind, LabelValues, bounded

PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PORTION_LINES: Final = 500

_LINE_END: Final = str.maketrans({"\\": "\\\\", "\n": "\\n"})
_QUOTED: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


def portions(
    families: Iterable[Family],
    common: Mapping[str, str],
    *,
    series_max: int,
    is_open_metrics: bool = False,
) -> Iterator[bytes]:
    """The page, sorted by name. A family without a series is left out, as RocketMQ does.

    Args:
        common: labels of every series.
        series_max: most series of one family.
    """
    lines: list[str] = []
    for family in sorted(families, key=lambda one: one.page_name):
        head: list[str] | None = _head(family, is_open_metrics)
        for line in _lines(family, common, series_max):
            if head is not None:
                lines += head
                head = None
            lines.append(line)
            if len(lines) >= PORTION_LINES:
                yield _encode(lines)
                lines = []
    lines += ["# TYPE target info", "target_info 1"] if is_open_metrics else _TARGET
    if is_open_metrics:
        lines.append("# EOF")
    yield _encode(lines)


_TARGET: Final = ["# TYPE target_info gauge", "target_info 1"]


def _head(family: Family, is_open_metrics: bool) -> list[str]:
    name = family.page_name
    if is_open_metrics:
        base = name.removesuffix("_total") if family.kind is Kind.COUNTER else name
        head = [f"# TYPE {base} {family.kind}"]
        if family.unit and base.endswith("_" + family.unit):
            head.append(f"# UNIT {base} {family.unit}")
        return [*head, f"# HELP {base} {family.help.translate(_QUOTED)}"]
    return [
        f"# HELP {name} {family.help.translate(_LINE_END)}",
        f"# TYPE {name} {family.kind}",
    ]


def _lines(family: Family, common: Mapping[str, str], series_max: int) -> Iterator[str]:
    name = family.page_name
    template = _template(family.labels, common)
    overflow = _template((OVERFLOW,), common)
    for values, value in bounded(family, series_max):
        labels = overflow % "true" if values is None else template % _escaped(values)
        if isinstance(value, Histogram):
            yield from _histogram_lines(name, labels, value)
        else:
            yield f"{name}{{{labels}}} {_number(value)}" if labels else f"{name} {_number(value)}"


def _histogram_lines(name: str, labels: str, value: Histogram) -> Iterator[str]:
    comma = "," if labels else ""
    below = 0
    for edge, count in zip((*value.edges, math.inf), value.counts, strict=True):
        below += count
        yield f'{name}_bucket{{{labels}{comma}le="{_number(edge)}"}} {below}'
    yield f"{name}_count{{{labels}}} {below}"
    yield f"{name}_sum{{{labels}}} {_number(value.sum)}"


def _template(labels: tuple[str, ...], common: Mapping[str, str]) -> str:
    """The labels sorted by name, with a place for each value that is not common; those in their given order."""
    assert tuple(sorted(labels)) == labels, f"labels not sorted: {labels}"
    known = {name: value.translate(_QUOTED).replace("%", "%%") for name, value in common.items()}
    # What a series says of itself counts more than what an operator has all series say.
    known.update(dict.fromkeys(labels, "%s"))
    return ",".join(f'{name}="{known[name]}"' for name in sorted(known))


def _escaped(values: LabelValues) -> LabelValues:
    for value in values:
        if "\\" in value or '"' in value or "\n" in value:
            return tuple([one.translate(_QUOTED) for one in values])
    return values


def _number(value: float) -> str:
    if value in (math.inf, -math.inf):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value)) if value == value else "NaN"


def _encode(lines: list[str]) -> bytes:
    # A name from the network may hold half a surrogate pair.
    return ("\n".join(lines) + "\n").encode(errors="replace")
