"""What a cluster is like at one moment, and what changed since another. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cometmq.admin import BrokerFigures, GroupSummary, Place

WAIT_FIGURE = "sendThreadPoolQueueHeadWaitTimeMills"
"""How long a send waits until it is looked at; with ours, how late the event loop is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """The slaves of a master: how many follow, how many are in sync, and how many bytes the slowest lacks."""

    following: int
    in_sync: int
    behind_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNow:
    """``figures`` is None if it did not answer, ``replicas`` if it is no master or does not tell."""

    place: Place
    figures: BrokerFigures | None
    replicas: Replicas | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """``failed`` is why, by address of the server that did not tell; ``at`` is seconds of a monotonic clock."""

    at: float
    brokers: Sequence[BrokerNow]
    groups: Sequence[GroupSummary]
    failed: Mapping[str, str]


class Changes:
    """What happened between two snapshots; ``before`` is None for the first."""

    def __init__(self, before: Snapshot | None, now: Snapshot) -> None:
        self._seconds = now.at - before.at if before is not None else 0.0
        self._figures = {
            one.place.address: one.figures
            for one in (before.brokers if before else ())
            if one.figures
        }
        self._lags = {one.group: one.lag for one in (before.groups if before else ())}

    def put_rate(self, broker: BrokerNow) -> float | None:
        """Messages per second that a broker stored; its own average if it was not seen before."""
        if broker.figures is None:
            return None
        rate = self._rate(broker, "msgPutTotalTodayNow")
        return broker.figures.put_tps if rate is None else rate

    def get_rate(self, broker: BrokerNow) -> float | None:
        """Messages per second that a broker delivered; its own average if it was not seen before."""
        if broker.figures is None:
            return None
        rate = self._rate(broker, "msgGetTotalTodayNow")
        return broker.figures.get_tps if rate is None else rate

    def lag_rate(self, group: GroupSummary) -> float | None:
        """Messages per second by which the lag of a group grew; None if it was not seen before."""
        known = self._lags.get(group.group)
        if known is None or self._seconds <= 0:
            return None
        return (group.lag - known) / self._seconds

    def _rate(self, broker: BrokerNow, key: str) -> float | None:
        before = self._figures.get(broker.place.address)
        if before is None or broker.figures is None or self._seconds <= 0:
            return None
        count = broker.figures.number(key) - before.number(key)
        # Less than before: it was started anew.
        return count / self._seconds if count >= 0 else None
