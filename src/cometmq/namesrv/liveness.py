"""Which brokers have registered, over which connections, and which have gone silent since.

No I/O: the caller passes the time, in seconds that never go back. Used by ``route_table``, which acts on the result.
"""

from __future__ import annotations

import math
from typing import Final, Protocol

import msgspec

from cometmq.model.topic import DataVersion

SILENCE_SECONDS: Final = 120.0
_SILENCE_SECONDS_MAX: Final = 24 * 3600.0


CONNECTIONS_MAX: Final = 4
"""Maximum per process: the first one, and others if it reconnects before the first is known to be gone."""


class Line(Protocol):
    """The part of a connection that is needed here."""

    @property
    def peer(self) -> str: ...

    def close(self, reason: str) -> None: ...


class LiveBroker(msgspec.Struct, kw_only=True):
    """One process of a broker (master or slave), as its last registration described it.

    ``connections`` are the open ones that it registered over, the oldest first. The oldest speaks for it.
    """

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str
    version: DataVersion
    connections: tuple[Line, ...]
    seen_at: float
    silence_seconds: float = SILENCE_SECONDS
    asked_at: float = -math.inf
    """When it was last probed."""
    answered_at: float = -math.inf
    is_signed: bool = False
    """It has registered with an account."""

    def is_same(self, broker_name: str, broker_id: int) -> bool:
        return self.broker_name == broker_name and self.broker_id == broker_id

    @property
    def epoch(self) -> int:
        """The epoch assigned by its controller; 0 without a controller."""
        return self.version.state_version

    @property
    def heard_at(self) -> float:
        return max(self.seen_at, self.answered_at)


class Liveness:
    """The registered processes by cluster and address. Not thread-safe."""

    def __init__(self) -> None:
        self._brokers: dict[tuple[str, str], LiveBroker] = {}
        self._by_name: dict[str, dict[tuple[str, str], LiveBroker]] = {}

    def __len__(self) -> int:
        return len(self._brokers)

    def put(self, broker: LiveBroker) -> None:
        self.remove(broker.cluster, broker.address)
        key = broker.cluster, broker.address
        self._brokers[key] = broker
        self._by_name.setdefault(broker.broker_name, {})[key] = broker

    def get(self, cluster: str, address: str) -> LiveBroker | None:
        return self._brokers.get((cluster, address))

    def touch(self, cluster: str, address: str, now: float) -> None:
        """The process was heard from; unknown ones stay unknown until they register."""
        if broker := self._brokers.get((cluster, address)):
            broker.seen_at = now

    def remove(self, cluster: str, address: str) -> None:
        broker = self._brokers.pop((cluster, address), None)
        if broker is not None:
            others = self._by_name[broker.broker_name]
            del others[cluster, address]
            if not others:
                del self._by_name[broker.broker_name]

    def near(self, broker_name: str, cluster: str, address: str) -> list[LiveBroker]:
        """Processes with that name in any cluster, and the one at that address whatever its name."""
        found = list(self._by_name.get(broker_name, {}).values())
        there = self._brokers.get((cluster, address))
        if there is not None and there.broker_name != broker_name:
            found.append(there)
        return found

    def silent(self, now: float) -> list[LiveBroker]:
        return [b for b in self._brokers.values() if b.seen_at + b.silence_seconds < now]

    def hang_up(self, connection: object) -> list[LiveBroker]:
        """Remove a closed connection. Returns the processes that have no other one.

        A broker that has reconnected has another one, so the late end of its old connection does it no harm.
        """
        left = []
        for broker in self._brokers.values():
            if connection in broker.connections:
                broker.connections = tuple(c for c in broker.connections if c is not connection)
                if not broker.connections:
                    left.append(broker)
        return left


def silence_seconds(asked_ms: int | None) -> float:
    """How long a broker may be silent: what it asked for, within limits; by default RocketMQ's two minutes."""
    if asked_ms is None or asked_ms <= 0:
        return SILENCE_SECONDS
    return min(asked_ms / 1000, _SILENCE_SECONDS_MAX)
