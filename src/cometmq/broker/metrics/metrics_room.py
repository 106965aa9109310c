"""The root of the room for metrics: which there are by the settings, who shows them, and what a dump says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from cometmq.broker.core import BrokerCore
from cometmq.broker.metrics.broker_families import BrokerFamilies
from cometmq.broker.metrics.broker_health import broker_health
from cometmq.broker.metrics.client_families import ClientFamilies
from cometmq.broker.metrics.creation_families import CreationFamilies
from cometmq.broker.metrics.lag import ConsumerLag
from cometmq.broker.metrics.message_families import MessageFamilies
from cometmq.broker.metrics.pop_families import PopFamilies
from cometmq.broker.metrics.replication_families import ReplicationFamilies
from cometmq.broker.metrics.store_families import StoreFamilies
from cometmq.broker.metrics.transaction_families import transaction_families
from cometmq.broker.registration import Registration
from cometmq.broker.replication.replication_room import ReplicationRoom
from cometmq.broker.replication.role import Role
from cometmq.broker.request_ports import RequestPorts
from cometmq.broker.rooms import Rooms
from cometmq.monitor.dump import Facts, dump
from cometmq.monitor.loop_lag import LoopLag
from cometmq.monitor.metrics import Ready, Source
from cometmq.monitor.monitor import Monitor, process_families
from cometmq.monitor.monitor_config import DISABLE
from cometmq.monitor.request_families import request_families

SCOPE = "broker-meter"
_CLIENTS_MAX = 200


class MetricsRoom:
    """``start`` and ``stop`` are the monitor's."""

    def __init__(
        self,
        core: BrokerCore,
        rooms: Rooms,
        ports: RequestPorts,
        role: Role,
        registration: Registration,
        replication: ReplicationRoom,
    ) -> None:
        self._core = core
        self._rooms = rooms
        self._ports = ports
        self._role = role
        config = core.live.current.monitor
        self._creations = CreationFamilies()
        lag = LoopLag()
        self.monitor = Monitor(
            config,
            [
                *sources(core, rooms, ports, self._creations),
                Ready(*ReplicationFamilies(core, replication, registration).families),
            ],
            common={
                "cluster": core.live.current.identity.cluster_name,
                "node_type": "broker",
                "node_id": core.broker_name,
            },
            scope=SCOPE,
            health=broker_health(core, role, registration, replication, lag),
            lag=lag,
        )
        ports.times.is_on = config.exporter != DISABLE and config.families.requests
        core.live.on_change(lambda changed: ports.times.slow_from(changed.monitor.slow_ms))
        ports.times.slow_from(config.slow_ms)

    def watch(self, ports: RequestPorts) -> None:
        """After all rooms have registered: time the requests that create something."""
        for dispatcher in (ports.main, ports.vip):
            self._creations.watch(dispatcher)

    def dump(self) -> None:
        """Tell what the broker is doing, for SIGUSR1."""
        config = self._core.live.current
        dump(self.facts, config.monitor.dump_path or config.store.path("dump.txt"))

    @property
    def facts(self) -> dict[str, Facts]:
        return {
            "broker": self._broker,
            "parked": self._parked,
            "watermarks": lambda: iter([repr(self._core.store.watermarks)]),
            "clients": self._clients,
        }

    def _broker(self) -> Iterator[str]:
        core, rooms = self._core, self._rooms
        yield repr(core.store)
        yield repr(self._role)
        yield repr(core.durability)
        yield repr(rooms.send.flow)
        yield repr(rooms.transaction.transactions)
        yield repr(rooms.timer.timed)
        yield repr(rooms.schedule)
        yield f"bounds reached: {dict(core.reached.counts)}"
        yield f"not well: {self.monitor.health.reasons()}"

    def _parked(self) -> Iterator[str]:
        yield repr(self._rooms.pull.long_polling)
        yield repr(self._rooms.pop)
        yield repr(self._rooms.pop.waiting)
        yield from islice(self._rooms.pull.long_polling.by_queue(), _CLIENTS_MAX)

    def _clients(self) -> Iterator[str]:
        yield repr(self._core.clients)
        for connection in islice(self._ports.connections, _CLIENTS_MAX):
            yield repr(connection)


def sources(
    core: BrokerCore, rooms: Rooms, ports: RequestPorts, creations: CreationFamilies
) -> list[Source]:
    """What the settings switch on, but for what needs a network."""
    wanted = core.live.current.monitor.families
    messages = MessageFamilies(core.stats)
    found: list[Source] = [
        Ready(*process_families(core.reached, lambda: _seconds_since(core))),
    ]
    if wanted.requests:
        found.append(Ready(*request_families(ports.times)))
    if wanted.messages:
        found.append(Ready(*messages.messages, *creations.families))
    if wanted.lag:
        found.append(Ready(messages.dead_letters))
        found.append(
            ConsumerLag(
                store=core.store,
                topics=core.topics,
                offsets=core.offsets,
                clients=core.clients,
                pops=rooms.pop.pops,
                clock=core.clock,
                is_slave=lambda: core.live.current.identity.is_slave,
            )
        )
    if wanted.connections:
        connections = ClientFamilies(core.clients, lambda: len(ports.connections))
        found.append(Ready(*connections.families))
    if wanted.transactions:
        found.append(Ready(*transaction_families(rooms.transaction.transactions)))
    if wanted.store:
        stored = StoreFamilies(
            store=core.store,
            files=core.files,
            clock=core.clock,
            timed=rooms.timer.timed,
            delays=rooms.schedule,
        )
        found.append(Ready(*stored.families))
    if wanted.pop:
        found.append(Ready(*PopFamilies(core.stats.pop, rooms.pop.pops, core.clock).families))
    if wanted.stats:
        figures = BrokerFamilies(core, rooms.pull.long_polling, rooms.pop.waiting)
        found.append(Ready(*figures.families))
    return found


def _seconds_since(core: BrokerCore) -> float:
    return (core.clock.wall_ms() - core.stats.boot_ms) / 1000
