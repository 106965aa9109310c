"""Who has registered, over which connection, and who has gone silent since.

Pure: the caller brings the time, in seconds that never go back. Used by ``route_table``, which acts on the answer.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from cometmq.model.topic import DataVersion

SILENCE_SECONDS: Final = 120.0
_SILENCE_SECONDS_MAX: Final = 24 * 3600.0


class Closable(Protocol):
    """As much of a connection as is needed here."""

    def close(self, reason: str) -> None: ...


class LiveBroker(msgspec.Struct, kw_only=True):
    """One process of a broker (master or slave), as its last registration described it."""

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str
    version: DataVersion
    connection: Closable | None
    seen_at: float
    silence_seconds: float = SILENCE_SECONDS


class Liveness:
    """The registered processes by cluster and address. Not thread-safe."""

    def __init__(self) -> None:
        self._brokers: dict[tuple[str, str], LiveBroker] = {}

    def __len__(self) -> int:
        return len(self._brokers)

    def put(self, broker: LiveBroker) -> None:
        self._brokers[broker.cluster, broker.address] = broker

    def get(self, cluster: str, address: str) -> LiveBroker | None:
        return self._brokers.get((cluster, address))

    def touch(self, cluster: str, address: str, now: float) -> None:
        """The process was heard of; unknown ones stay unknown until they register."""
        if broker := self._brokers.get((cluster, address)):
            broker.seen_at = now

    def remove(self, cluster: str, address: str) -> None:
        self._brokers.pop((cluster, address), None)

    def silent(self, now: float) -> list[LiveBroker]:
        return [b for b in self._brokers.values() if b.seen_at + b.silence_seconds < now]

    def of_connection(self, connection: object) -> list[LiveBroker]:
        """Those whose latest registration came over ``connection``.

        A broker that has reconnected is no longer among those of its old connection, so the late end of that one
        does it no harm.
        """
        return [b for b in self._brokers.values() if b.connection is connection]


def silence_seconds(asked_ms: int | None) -> float:
    """How long a broker may be silent: what it asked for within reason, else RocketMQ's two minutes."""
    if asked_ms is None or asked_ms <= 0:
        return SILENCE_SECONDS
    return min(asked_ms / 1000, _SILENCE_SECONDS_MAX)
