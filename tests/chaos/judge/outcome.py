"""What came of one trial: counts, which of them were promised to be 0, and the curves of the report. Plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.chaos.judge.checkers import PROBES, gone, sent_counts
from tests.chaos.judge.elections import Election, elections, gaps, sends_under, stood_still
from tests.chaos.judge.history import ACKNOWLEDGED, History, Send
from tests.chaos.judge.verdict import judge
from tests.chaos.plan.faults import Fault
from tests.chaos.plan.modes import Count, Mode

SHOWN_MAX: Final = 20
"""Violations of a kind that are told in words."""


@dataclass
class Outcome:
    """``gone`` counts the acknowledged messages that are lost or missing, each once. ``error`` is why the trial came to
    no end, if it did not. ``roles`` are (second, host, role), in order. Under controllers, ``elections`` are (second,
    group, epoch, address of the master), and there is how long nobody took messages, once and in all."""

    server: str
    mode: str
    seed: int
    network: str
    faults: list[str]
    seconds: float
    counts: dict[str, int] = field(default_factory=dict)
    promised: list[str] = field(default_factory=list)
    violations: dict[str, list[str]] = field(default_factory=dict)
    sends: dict[str, int] = field(default_factory=dict)
    gone: int = 0
    delivered: int = 0
    send_gap_seconds: float = 0.0
    delivery_gap_seconds: float = 0.0
    sent_by_second: list[int] = field(default_factory=list)
    delivered_by_second: list[int] = field(default_factory=list)
    inflicted: list[dict[str, Any]] = field(default_factory=list)
    roles: list[tuple[float, str, str]] = field(default_factory=list)
    elections: list[Election] = field(default_factory=list)
    masterless_longest_seconds: float = 0.0
    masterless_seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    error: str = ""

    @property
    def broken(self) -> list[str]:
        """Promises that did not hold."""
        return [count for count in self.promised if self.counts.get(count)]

    @property
    def is_good(self) -> bool:
        return not self.error and not self.broken


def conclude(outcome: Outcome, history: History, mode: Mode, inflicted: Iterable[Fault]) -> None:
    """Fill in what the history says. Only faults that did happen weaken a promise."""
    violations = judge(history)
    outcome.counts = {count.value: len(found) for count, found in violations.items()}
    outcome.violations = {
        count.value: found[:SHOWN_MAX]
        for count, found in violations.items()
        if found and count is not Count.DUPLICATED
    }
    outcome.promised = sorted(count.value for count in mode.promised(inflicted))
    outcome.sends = sent_counts(history)
    outcome.gone = len(gone(history))
    outcome.delivered = len(history.deliveries)
    acknowledged = [
        send.ended
        for send in history.sends
        if send.status == ACKNOWLEDGED and send.workload != PROBES
    ]
    delivered = [delivery.at for delivery in history.deliveries]
    outcome.sent_by_second = by_second(acknowledged)
    outcome.delivered_by_second = by_second(delivered)
    until = max((send.began for send in history.sends), default=0.0)
    outcome.send_gap_seconds = longest_gap(acknowledged, until)
    outcome.delivery_gap_seconds = longest_gap(delivered, until)
    for each in outcome.inflicted:
        each["stood_still"] = stood_still(history.sends, each["began"], each["ended"])
        under_way = sends_under(history.sends, each["began"], each["ended"])
        each["sends"] = len(under_way)
        each["slow_seconds"] = slow_seconds(under_way)
        each["unacknowledged"] = sum(send.status != ACKNOWLEDGED for send in under_way)
    if mode.controllers:
        outcome.elections = list(elections(history))
        lengths = [end - begin for begin, end in gaps(history, until)]
        outcome.masterless_longest_seconds = round(max(lengths, default=0.0), 2)
        outcome.masterless_seconds = round(sum(lengths), 2)


def slow_seconds(sends: Iterable[Send]) -> float:
    """99 % took no longer."""
    took = sorted(send.ended - send.began for send in sends)
    return round(took[len(took) * 99 // 100], 3) if took else 0.0


def by_second(times: Sequence[float]) -> list[int]:
    counts: Mapping[int, int] = Counter(int(time) for time in times)
    return [counts.get(second, 0) for second in range(max(counts, default=-1) + 1)]


def longest_gap(times: Iterable[float], until: float) -> float:
    """The longest time without an event, from the first one to ``until``."""
    ordered = sorted(time for time in times if time <= until)
    if not ordered:
        return until
    pairs = zip(ordered, [*ordered[1:], until], strict=True)
    return round(max(later - before for before, later in pairs), 2)
