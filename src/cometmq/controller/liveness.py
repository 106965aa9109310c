"""Which brokers send heartbeats, and what those say. No I/O: the caller passes the time, in seconds that never go back.

Every controller has its own table, filled by the brokers, who send heartbeats to all controllers. Only brokers that
have an id are entered, so the table is as small as the groups are.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from cometmq.controller.group import Group, Living, Report

SILENCE_SECONDS: Final = 10.0
_SILENCE_SECONDS_MAX: Final = 3600.0


@dataclass(slots=True, kw_only=True)
class _Broker:
    address: str
    report: Report
    silence_seconds: float
    heard_at: float
    connection: object
    has_hung_up: bool = False

    def is_alive(self, now: float) -> bool:
        return now <= self.heard_at + self.silence_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    broker_name: str
    broker_id: int
    silent_seconds: float


class Liveness:
    """Not thread-safe."""

    def __init__(self, now: float) -> None:
        self._watched_since = now
        self._brokers: dict[tuple[str, int], _Broker] = {}

    def watch(self, now: float) -> None:
        """From now on it matters. Whoever seems silent may have been cut off from this controller alone until now."""
        self._watched_since = now

    def living(self, group: Group | None, now: float) -> Living:
        if group is None:
            return Living()
        reports: dict[int, Report] = {}
        unheard: set[int] = set()
        for broker_id in group.members:
            broker = self._brokers.get((group.broker_name, broker_id))
            if broker is None:
                unheard.add(broker_id)
            elif broker.is_alive(now):
                reports[broker_id] = broker.report
            elif not broker.has_hung_up:
                unheard.add(broker_id)
        is_young = now <= self._watched_since + SILENCE_SECONDS
        return Living(reports=reports, doubtful=frozenset(unheard if is_young else ()))

    def address(self, broker_name: str, broker_id: int, now: float) -> str | None:
        """Where a broker with that id is alive; None if there is none."""
        broker = self._brokers.get((broker_name, broker_id))
        return broker.address if broker is not None and broker.is_alive(now) else None

    def registered(
        self, broker_name: str, broker_id: int, address: str, connection: object, now: float
    ) -> None:
        """A broker has started: it is alive, and what its heartbeats said before counts no longer."""
        self._brokers[broker_name, broker_id] = _Broker(
            address=address,
            report=Report(),
            silence_seconds=SILENCE_SECONDS,
            heard_at=now,
            connection=connection,
        )

    def heard(
        self,
        broker_name: str,
        broker_id: int,
        address: str,
        report: Report,
        silence_seconds: float,
        connection: object,
        now: float,
    ) -> bool:
        """A heartbeat. Whether the broker was not alive before."""
        was_alive = self.address(broker_name, broker_id, now) is not None
        self._brokers[broker_name, broker_id] = _Broker(
            address=address,
            report=report,
            silence_seconds=silence_seconds,
            heard_at=now,
            connection=connection,
        )
        return not was_alive

    def hang_up(self, connection: object) -> list[tuple[str, int]]:
        """A connection was closed: the brokers whose last heartbeat came over it are dead, and returned."""
        lost = []
        for key, broker in self._brokers.items():
            if broker.connection is connection:
                broker.connection = None
                broker.has_hung_up = True
                if broker.heard_at > -math.inf:
                    broker.heard_at = -math.inf
                    lost.append(key)
        return lost

    def silent(self, now: float) -> list[Lost]:
        """The brokers that have become silent since the last call."""
        lost = []
        for (name, broker_id), broker in self._brokers.items():
            if broker.heard_at > -math.inf and not broker.is_alive(now):
                seconds = now - broker.heard_at
                broker.heard_at = -math.inf
                lost.append(Lost(broker_name=name, broker_id=broker_id, silent_seconds=seconds))
        return lost

    def forget(self, broker_name: str, ids: Collection[int]) -> None:
        for broker_id in ids:
            self._brokers.pop((broker_name, broker_id), None)

    def __len__(self) -> int:
        return len(self._brokers)


def silence_seconds(asked_ms: int | None) -> float:
    """How long a broker may be silent: what it asked for, within limits; by default RocketMQ's ten seconds."""
    if asked_ms is None or asked_ms <= 0:
        return SILENCE_SECONDS
    return min(asked_ms / 1000, _SILENCE_SECONDS_MAX)
