"""Known routes, the brokers in them, and their changes. No I/O; times are seconds of a monotonic clock.

A route stays the same object as long as nothing in it changes, so derived data can be cached with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from cometmq.client.core.broker_order import Place
from cometmq.model.ids import MASTER_ID
from cometmq.model.route import TopicRoute


@dataclass(slots=True)
class _Known:
    route: TopicRoute
    asked_at: float
    is_stale: bool = False


class RouteTable:
    def __init__(self) -> None:
        self._routes: dict[str, _Known] = {}
        self._addresses: dict[str, dict[int, str]] = {}

    def route(self, topic: str) -> TopicRoute | None:
        known = self._routes.get(topic)
        return None if known is None else known.route

    def is_stale(self, topic: str) -> bool:
        """Whether the route has turned out to be wrong since it was learned."""
        known = self._routes.get(topic)
        return known is not None and known.is_stale

    def age(self, topic: str, now: float) -> float:
        """Seconds since the route was last confirmed; infinite if it is unknown."""
        known = self._routes.get(topic)
        return float("inf") if known is None else now - known.asked_at

    def learn(self, topic: str, route: TopicRoute, now: float) -> bool:
        """Store a name server's reply. Returns whether the topic's route has changed."""
        for data in route.broker_datas:
            self._addresses[data.broker_name] = dict(data.broker_addrs)
        known = self._routes.get(topic)
        if known is not None and _sorted(known.route) == _sorted(route):
            known.asked_at = now
            known.is_stale = False
            return False
        self._routes[topic] = _Known(route, now)
        return True

    def confirm(self, topic: str, now: float) -> None:
        """No name server answered: keep using the route."""
        if (known := self._routes.get(topic)) is not None:
            known.asked_at = now
            known.is_stale = False

    def doubt(self, topic: str) -> None:
        """A broker of the route failed or refused: ask again before the next use."""
        if (known := self._routes.get(topic)) is not None:
            known.is_stale = True

    def addresses(self, broker_name: str) -> dict[int, str]:
        """The broker's addresses by id; empty if no route names it."""
        return self._addresses.get(broker_name, {})

    def brokers(self) -> dict[str, dict[int, str]]:
        """All brokers by name."""
        return dict(self._addresses)

    def writable_address(self, broker_name: str) -> str | None:
        """The master's address, or a slave's while no master is known."""
        addresses = self.addresses(broker_name)
        return addresses.get(MASTER_ID) or next((addresses[key] for key in sorted(addresses)), None)

    def readable_places(self, broker_name: str, suggested_id: int) -> list[Place]:
        """Where to read, best first: the suggested broker, otherwise the next slave, otherwise any."""
        addresses = self.addresses(broker_name)
        # If a suggested slave is gone, the next one is used, as in RocketMQ.
        wanted = [suggested_id] if suggested_id == MASTER_ID else [suggested_id, suggested_id + 1]
        return [
            Place(addresses[broker_id], broker_id == MASTER_ID)
            for broker_id in dict.fromkeys((*wanted, *sorted(addresses)))
            if broker_id in addresses
        ]

    def lacks_master(self, topics: Iterable[str]) -> bool:
        """Whether a broker of one of these topics has no master now."""
        return any(
            MASTER_ID not in data.broker_addrs
            for topic in topics
            if (known := self._routes.get(topic)) is not None
            for data in known.route.broker_datas
        )

    def forget_unused(self, watched: Collection[str], older_than: float) -> None:
        """Drop routes that nobody watches and that were not used since a time."""
        for topic, known in list(self._routes.items()):
            if topic not in watched and known.asked_at < older_than:
                del self._routes[topic]

    def forget_offline(self) -> list[str]:
        """Drop brokers that no route names any more; returns their names."""
        named: dict[str, set[str]] = {}
        for known in self._routes.values():
            for data in known.route.broker_datas:
                named.setdefault(data.broker_name, set()).update(data.broker_addrs.values())
        gone = []
        for name, addresses in list(self._addresses.items()):
            kept = {
                broker_id: address
                for broker_id, address in addresses.items()
                if address in named.get(name, ())
            }
            if kept:
                self._addresses[name] = kept
            else:
                del self._addresses[name]
                gone.append(name)
        return gone


def _sorted(route: TopicRoute) -> tuple[object, ...]:
    """The relevant content of a route: the order in which a name server lists brokers does not matter."""
    return (
        sorted(
            (data.broker_name, data.read_queue_nums, data.write_queue_nums, data.perm)
            for data in route.queue_datas
        ),
        sorted(
            (data.broker_name, data.cluster, sorted(data.broker_addrs.items()))
            for data in route.broker_datas
        ),
        route.order_topic_conf or "",
    )
