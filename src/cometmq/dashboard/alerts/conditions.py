"""Which rules hold for whom, as the last round of a site tells. No I/O and no time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from cometmq.dashboard.bodies.operations import Rule
from cometmq.dashboard.watch.figures import dead_letters, series_name, slave_lag
from cometmq.dashboard.watch.site import Site
from cometmq.model.names import DLQ_PREFIX

CERTIFICATE: Final = "certificate"
DAY_MS: Final = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """``subject`` is a broker, a group or a topic."""

    rule: str
    kind: str
    subject: str
    value: float
    text: str


Found = Iterator[tuple[str, float, str]]
"""Subject, value, and what it means."""


def conditions_of(site: Site, rules: Sequence[Rule]) -> list[Condition]:
    found = []
    for rule in rules:
        if not rule.enabled:
            continue
        for subject, value, text in _KINDS[rule.kind](site):
            if not fnmatchcase(subject, rule.pattern):
                continue
            if _holds(rule, value):
                found.append(
                    Condition(
                        rule=rule.name, kind=rule.kind, subject=subject, value=value, text=text
                    )
                )
    return found


def _holds(rule: Rule, value: float) -> bool:
    if rule.kind == CERTIFICATE:
        return value <= rule.threshold
    return value > rule.threshold if rule.kind in _MORE_THAN else value >= rule.threshold


_MORE_THAN: Final = frozenset({"lag", "lag_ms", "dead_letters", "replication"})


def _lag(site: Site) -> Found:
    for name, group in site.snapshot.groups.items():
        if group.lag > 0:
            yield name, float(group.lag), f"group {name} is {group.lag} messages behind"


def _lag_ms(site: Site) -> Found:
    for name, age in site.lag_ages.items():
        yield name, float(age), f"group {name} is {age / 1000:.0f} s behind"


def _disk(site: Site) -> Found:
    for one in site.snapshot.brokers:
        if one.figures is not None and one.silent_since_ms is None:
            ratio = one.figures.disk_ratio
            yield (
                series_name(one),
                ratio,
                f"the disk of broker {series_name(one)} is {ratio:.0%} full",
            )


def _replication(site: Site) -> Found:
    for one in site.snapshot.brokers:
        if one.place.is_master or one.silent_since_ms is not None:
            continue
        behind = slave_lag(site.snapshot, one)
        if behind is not None:
            text = f"replica {series_name(one)} is {behind} bytes behind its master"
            yield series_name(one), float(behind), text


def _letters(site: Site) -> Found:
    for topic in dead_letters(site.snapshot, site.status):
        trend = site.trends.of(f"topic:{topic}:messages")
        group = topic.removeprefix(DLQ_PREFIX)
        if trend:
            grown = trend[-1] - trend[0]
            yield group, grown, f"{grown:.0f} new dead letters of group {group} in the last minutes"


def _no_consumer(site: Site) -> Found:
    for name, group in site.snapshot.groups.items():
        found = site.members.get(name)
        if group.lag > 0 and found is not None and not found.value.count:
            yield (
                name,
                float(group.lag),
                f"nobody consumes for group {name}, {group.lag} messages wait",
            )


def _silent(site: Site) -> Found:
    for one in site.snapshot.brokers:
        if one.silent_since_ms is not None:
            age = (site.snapshot.at_ms - one.silent_since_ms) / 1000
            yield series_name(one), age, f"broker {series_name(one)} does not answer: {one.problem}"


def _certificate(site: Site) -> Found:
    for name, end_ms in site.certificates.ends.items():
        days = (end_ms - site.snapshot.at_ms) / DAY_MS
        when = f"ends in {days:.1f} days" if days > 0 else "has ended"
        yield name, days, f"the certificate of {name} {when}"


_KINDS: Final[dict[str, Callable[[Site], Found]]] = {
    "lag": _lag,
    "lag_ms": _lag_ms,
    "disk": _disk,
    "replication": _replication,
    "dead_letters": _letters,
    "no_consumer": _no_consumer,
    "broker_silent": _silent,
    CERTIFICATE: _certificate,
}
