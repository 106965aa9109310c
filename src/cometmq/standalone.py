"""A name server and brokers in one process on one event loop, for people who just want a queue.

``cometmq up`` runs it with a data directory, ``cometmq.testing.cluster`` inside a test. One broker is the rule;
groups of a master and its slaves, with or without a controller, show on a laptop what several machines do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from cometmq.access.access_config import ServerAccessConfig
from cometmq.base.errors import ConfigError
from cometmq.base.properties_file import decode_file, parse_properties
from cometmq.base.settings import rows
from cometmq.broker.config.broker_config import load_broker_config
from cometmq.broker.config.config_slices import SLAVE, SYNC_MASTER
from cometmq.broker.server import Broker
from cometmq.controller.controller_config import SCHEMA as CONTROLLER_SCHEMA
from cometmq.controller.server import Controller
from cometmq.monitor.monitor_config import PROM, MonitorConfig
from cometmq.namesrv.namesrv_config import load_namesrv_config
from cometmq.namesrv.server import NameServer

log = logging.getLogger("cometmq.broker")

PORT_STEP: Final = 10
"""From one broker's port to the next one's: each has a port for slaves one above its own, and a VIP port two below."""
INNER_KEY: Final = "innerClientAuthenticationCredentials"
_ACCESS_KEYS: Final = frozenset(row.key for row in rows(ServerAccessConfig)) - {
    "accountPath",
    "accountKeyPath",
    "auditLogPath",
    # The other two have no TLS here.
    "tlsSubjectAsAccount",
}
"""What holds for all servers alike."""
_PAGE_PORTS: Final = ("metricsPromExporterPort", "healthPort")
_PROMETHEUS: Final = (PROM, "2")
PORT_MAX: Final = 65535
FOLLOW_SECONDS_MAX: Final = 10.0
FOLLOW_STEP_SECONDS: Final = 0.01

_OWN_KEYS: Final = (
    "brokerName",
    "brokerId",
    "listenPort",
    "haListenPort",
    "haMasterAddress",
    "storePathRootDir",
    "storePathCommitLog",
    "storePathEpochFile",
    "storePathBrokerIdentity",
    "auditLogPath",
    "dumpPath",
)
"""What is different for each broker, so that nobody can set it for all of them."""


class Place(NamedTuple):
    """Of a broker among the others: ``number`` 0 begins as the master of its group, the others as slaves."""

    group: int
    number: int

    @property
    def broker_name(self) -> str:
        return f"standalone-{self.group + 1}" if self.group else "standalone"

    @property
    def store_name(self) -> str:
        """Of its directory below the data directory."""
        store = f"store-{self.group + 1}" if self.group else "store"
        return f"{store}-slave-{self.number}" if self.number else store


class Standalone:
    """``async with Standalone(data_directory) as servers``: all of them run inside the block.

    Args:
        data_directory: where the servers keep all their data.
        namesrv_port: 0 takes any free port.
        broker_port: of the first broker; each further one is 10 above the one before. 0 takes any free ports.
        bind_address: the address that all listen on, also given to clients.
        broker_settings: further ``broker.conf`` keys, for all brokers.
        masters: number of broker groups.
        slaves: slaves in each group. With any, a master is a SYNC_MASTER unless ``broker_settings`` name another
            role; roles that are changed while the servers run are kept in the data directory.
        has_controller: a controller decides who is the master of each group.
        controller_port: 0 takes any free port.
        masters_elsewhere: number of broker groups after those, whose masters others run, by ``settings_of``. Then a
            topic that is created by use is created on all of them, unless ``broker_settings`` say otherwise.
    """

    def __init__(
        self,
        data_directory: str,
        *,
        namesrv_port: int = 9876,
        broker_port: int = 10911,
        bind_address: str = "127.0.0.1",
        broker_settings: Mapping[str, str] | None = None,
        masters: int = 1,
        slaves: int = 0,
        has_controller: bool = False,
        controller_port: int = 9878,
        masters_elsewhere: int = 0,
    ) -> None:
        self._data_directory = data_directory
        self._has_controller = has_controller
        self._controller_port = controller_port
        self.controller: Controller | None = None
        self._namesrv_port = namesrv_port
        self._broker_port = broker_port
        self._bind_address = bind_address
        self._broker_settings = dict(broker_settings or {})
        self._slaves = slaves
        self._masters_elsewhere = masters_elsewhere
        self._places = [
            Place(group, number) for group in range(masters) for number in range(slaves + 1)
        ]
        self._running: dict[Place, Broker] = {}
        self._check()
        self._stack = AsyncExitStack()
        self.name_server: NameServer

    def is_alive(self) -> bool:
        """Whether a watchdog should leave them alone."""
        return all(broker.is_alive() for broker in self.brokers)

    def dump(self) -> None:
        """Write down what they are doing, each in its store."""
        for broker in self.brokers:
            broker.dump()

    @property
    def broker(self) -> Broker:
        """The first one."""
        return self._running[self._places[0]]

    @property
    def brokers(self) -> list[Broker]:
        """Those that run, group by group."""
        return [self._running[place] for place in self._places if place in self._running]

    @property
    def name_server_address(self) -> str:
        return f"{self._bind_address}:{self.name_server.port}"

    @property
    def broker_address(self) -> str:
        return f"{self._bind_address}:{self.broker.port}"

    @property
    def controller_address(self) -> str | None:
        """None if there is none."""
        return None if self.controller is None else f"{self._bind_address}:{self.controller.port}"

    def settings_of(self, place: Place) -> dict[str, str]:
        """``broker.conf`` of a broker that runs elsewhere, once the name server runs."""
        return self._settings(place, {})

    async def wait_for_masters(self, names: Iterable[str]) -> None:
        """Until the name server knows these brokers. Raises ConfigError: it has waited long enough."""
        wanted = set(names)
        try:
            async with asyncio.timeout(FOLLOW_SECONDS_MAX):
                while wanted - set(self.name_server.table.cluster_info()[0]):  # noqa: ASYNC110 - as above
                    await asyncio.sleep(FOLLOW_STEP_SECONDS)
        except TimeoutError:
            missing = wanted - set(self.name_server.table.cluster_info()[0])
            raise ConfigError(
                f"the name server does not know {', '.join(sorted(missing))} after {FOLLOW_SECONDS_MAX:g} s"
            ) from None

    def place_of(self, broker: Broker) -> Place:
        """Raises KeyError: it does not run here."""
        for place, running in self._running.items():
            if running is broker:
                return place
        raise KeyError(f"{broker!r} does not run here")

    def group_of(self, broker: Broker) -> list[Broker]:
        """The running brokers of its group, itself included."""
        group = self.place_of(broker).group
        return [one for place, one in self._running.items() if place.group == group]

    def release(self, broker: Broker) -> Place:
        """Let go of a broker, which the caller stops; its place may be taken again with ``start_broker``."""
        place = self.place_of(broker)
        del self._running[place]
        return place

    async def start_broker(self, place: Place, *, role: str | None = None) -> Broker:
        """Start the broker of a place, on what is in its directory.

        Args:
            role: None for the one that it had.
        """
        if place in self._running:
            raise ConfigError(f"{self._running[place]!r} runs already")
        changes = {} if role is None else {"brokerRole": role}
        broker = self._broker(place, changes)
        await self._run(place, broker)
        await self.wait_for_slaves()
        return broker

    async def wait_for_slaves(self) -> None:
        """Until all slaves follow whose master runs, but not for ever; so that the next send finds them.

        Under a controller: until every group has a master, and it waits for all others of the group.

        Why one does not follow is in the log.
        """
        try:
            async with asyncio.timeout(FOLLOW_SECONDS_MAX):
                while not self._have_all_slaves:  # noqa: ASYNC110 - there is nobody who would tell
                    await asyncio.sleep(FOLLOW_STEP_SECONDS)
        except TimeoutError:
            log.warning("not all slaves follow yet seconds=%g", FOLLOW_SECONDS_MAX)

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    def _check(self) -> None:
        count = len(self._places) + self._masters_elsewhere
        if count == 1:
            return
        own = [key for key in _OWN_KEYS if key in self._broker_settings]
        if own:
            raise ConfigError(f"{', '.join(own)} cannot be set for {count} brokers")
        last_port = self._broker_port + PORT_STEP * (count - 1)
        if self._broker_port and last_port + 1 > PORT_MAX:
            raise ConfigError(
                f"there is no room for {count} brokers from port {self._broker_port} on: the last one would be at "
                f"{last_port}, and slaves connect to the port above"
            )
        if self._masters_elsewhere and "namesrvAddr" in self._broker_settings:
            raise ConfigError(
                f"namesrvAddr cannot be set for {count} brokers: they register with the name server that runs here"
            )
        if self._broker_settings.get("brokerRole") == SLAVE:
            raise ConfigError("brokerRole=SLAVE cannot be set for all brokers: somebody must lead")
        if self._has_controller and "brokerRole" in self._broker_settings:
            raise ConfigError("brokerRole cannot be set: the controller decides who is the master")

    async def _start(self) -> None:
        namesrv_config, _ = load_namesrv_config(
            {
                **self._access_settings,
                "listenPort": str(self._namesrv_port),
                "bindAddress": self._bind_address,
                "kvConfigPath": f"{self._data_directory}/namesrv/kvConfig.json",
                "configStorePath": f"{self._data_directory}/namesrv/namesrv.properties",
            }
        )
        self.name_server = NameServer(namesrv_config)
        await self.name_server.start()
        self._stack.push_async_callback(self.name_server.stop)
        if self._has_controller:
            await self._start_controller()
        self._stack.push_async_callback(self._stop_brokers)
        # Masters first: their slaves then learn from the name server where they are.
        brokers = [(place, self._broker(place, {})) for place in self._places]
        for place, broker in sorted(brokers, key=lambda one: _is_slave(one[1])):
            await self._run(place, broker)
        await self.wait_for_slaves()

    async def _run(self, place: Place, broker: Broker) -> None:
        await broker.start()
        self._running[place] = broker
        self._share_accounts(broker)

    async def _start_controller(self) -> None:
        config, _ = CONTROLLER_SCHEMA.load(
            {
                **self._access_settings,
                "bindAddress": self._bind_address,
                "listenPort": str(self._controller_port),
                "controllerStorePath": f"{self._data_directory}/controller",
            }
        )
        self.controller = Controller(config)
        await self.controller.start()
        self._stack.push_async_callback(self.controller.stop)

    @property
    def _access_settings(self) -> dict[str, str]:
        """The brokers' settings of accounts, for the other servers.

        Without something that brokers sign with, only ``allowAnonymous`` is for all: name server and controller could
        not tell the brokers from strangers.
        """
        given = self._broker_settings
        keys = _ACCESS_KEYS if INNER_KEY in given else {"allowAnonymous"}
        return {key: given[key] for key in keys if key in given}

    def _share_accounts(self, broker: Broker) -> None:
        """Name server and controller decide by what the brokers know."""
        keeper = broker.access.accounts
        doors = (
            [self.name_server.door]
            if self.controller is None
            else [self.name_server.door, self.controller.door]
        )
        for door in doors:
            if keeper is not None and door.accounts is not None:
                door.share(keeper)

    async def _stop_brokers(self) -> None:
        """Slaves first: what a master answers until its end has all its copies or says so."""
        for broker in sorted(self.brokers, key=_is_slave, reverse=True):
            self.release(broker)
            await broker.stop()

    def _broker(self, place: Place, changes: Mapping[str, str]) -> Broker:
        path = f"{self._data_directory}/{place.store_name}.properties" if self._slaves else None
        settings = {**self._settings(place, _kept_in(path)), **changes}
        config, ignored = load_broker_config(settings)
        return Broker(config, config_path=path, ignored={key: settings[key] for key in ignored})

    def _settings(self, place: Place, kept: Mapping[str, str]) -> dict[str, str]:
        position = place.group * (self._slaves + 1) + place.number
        port = self._broker_port
        if port:
            port += PORT_STEP * position
        settings = {
            "brokerName": place.broker_name,
            "bindAddress": self._bind_address,
            "brokerIP1": self._bind_address,
            "listenPort": str(port),
            "namesrvAddr": self.name_server_address,
            "storePathRootDir": f"{self._data_directory}/{place.store_name}",
            # A master has a number, too, for the day when it becomes a slave.
            "brokerId": str(place.number or self._slaves + 1) if self._slaves else "0",
            **({"autoCreateTopicOnAllMasters": "true"} if self._masters_elsewhere else {}),
            **kept,
            **self._broker_settings,
            **page_ports(self._broker_settings, position),
        }
        if self.controller is not None:
            settings["enableControllerMode"] = "true"
            settings["controllerAddr"] = str(self.controller_address)
        elif self._slaves:
            role = kept.get("brokerRole", SLAVE if place.number else SYNC_MASTER)
            settings["brokerRole"] = (
                role if role == SLAVE else self._broker_settings.get("brokerRole", role)
            )
        return settings

    @property
    def _have_all_slaves(self) -> bool:
        if self.controller is not None:
            return all(self._is_complete(place.group) for place in self._running)
        for master in self.brokers:
            if not _is_slave(master):
                slaves = sum(_is_slave(one) for one in self.group_of(master))
                if len(master.core.replicas) < slaves:
                    return False
        return True

    def _is_complete(self, group: int) -> bool:
        """Whether a group under a controller has a master, with everybody who runs in its SyncStateSet."""
        brokers = [one for place, one in self._running.items() if place.group == group]
        for broker in brokers:
            switch = broker.replication.switch
            assert switch is not None
            if not _is_slave(broker) and broker.role.is_settled:
                return len(switch.sync.members) == len(brokers)
        return False


def page_ports(given: Mapping[str, str], position: int) -> dict[str, str]:
    """Ports of metrics and health: each broker has them one above those of the broker before."""
    ports = {key: given[key] for key in _PAGE_PORTS if key in given}
    if given.get("metricsExporterType") in _PROMETHEUS:
        ports.setdefault("metricsPromExporterPort", str(MonitorConfig().port))
    # What is no number is refused with all other settings.
    return {
        key: str(int(port) + position)
        for key, port in ports.items()
        if port.isdecimal() and int(port)
    }


def _is_slave(broker: Broker) -> bool:
    return broker.live.current.identity.is_slave


def _kept_in(path: str | None) -> dict[str, str]:
    """What was changed while the servers ran."""
    if path is None or not Path(path).exists():
        return {}
    return parse_properties(decode_file(Path(path).read_bytes()))
