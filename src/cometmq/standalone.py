"""A name server and brokers in one process on one event loop, for people who just want a queue.

``cometmq up`` runs it with a data directory, ``cometmq.testing.cluster`` inside a test. One broker is the rule;
groups of a master and its slaves, with or without a controller, show on a laptop what several machines do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from cometmq.access.inner_config import InnerConfig
from cometmq.base.errors import ConfigError
from cometmq.base.properties_file import decode_file, parse_properties
from cometmq.broker.config.broker_config import load_broker_config
from cometmq.broker.config.config_slices import SLAVE, SYNC_MASTER
from cometmq.broker.server import Broker
from cometmq.controller.controller_config import ControllerConfig
from cometmq.controller.server import Controller
from cometmq.namesrv.namesrv_config import load_namesrv_config
from cometmq.namesrv.server import NameServer

log = logging.getLogger("cometmq.broker")

PORT_STEP: Final = 10
"""From one broker's port to the next one's: each has a port for slaves one above its own, and a VIP port two below."""
_INNER_KEY: Final = "innerClientAuthenticationCredentials"
FOLLOW_SECONDS_MAX: Final = 10.0
FOLLOW_STEP_SECONDS: Final = 0.01

_OWN_KEYS: Final = (
    "brokerName",
    "brokerId",
    "listenPort",
    "haListenPort",
    "haMasterAddress",
    "storePathRootDir",
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
        self._places = [
            Place(group, number) for group in range(masters) for number in range(slaves + 1)
        ]
        self._running: dict[Place, Broker] = {}
        self._check()
        self._stack = AsyncExitStack()
        self.name_server: NameServer

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
        await broker.start()
        self._running[place] = broker
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
        if len(self._places) == 1:
            return
        own = [key for key in _OWN_KEYS if key in self._broker_settings]
        if own:
            raise ConfigError(f"{', '.join(own)} cannot be set for {len(self._places)} brokers")
        if self._broker_settings.get("brokerRole") == SLAVE:
            raise ConfigError("brokerRole=SLAVE cannot be set for all brokers: somebody must lead")
        if self._has_controller and "brokerRole" in self._broker_settings:
            raise ConfigError("brokerRole cannot be set: the controller decides who is the master")

    async def _start(self) -> None:
        namesrv_config, _ = load_namesrv_config(
            {
                **self._inner_settings,
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
            await broker.start()
            self._running[place] = broker
        await self.wait_for_slaves()

    async def _start_controller(self) -> None:
        config = ControllerConfig(
            inner=InnerConfig(text=self._inner_settings.get(_INNER_KEY, "")),
            bind_address=self._bind_address,
            listen_port=self._controller_port,
            store_path=f"{self._data_directory}/controller",
        )
        self.controller = Controller(config)
        await self.controller.start()
        self._stack.push_async_callback(self.controller.stop)

    @property
    def _inner_settings(self) -> dict[str, str]:
        """What all servers sign their requests to each other with."""
        text = self._broker_settings.get(_INNER_KEY)
        return {} if text is None else {_INNER_KEY: text}

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
        port = self._broker_port
        if port:
            port += PORT_STEP * self._places.index(place)
        settings = {
            "brokerName": place.broker_name,
            "bindAddress": self._bind_address,
            "brokerIP1": self._bind_address,
            "listenPort": str(port),
            "namesrvAddr": self.name_server_address,
            "storePathRootDir": f"{self._data_directory}/{place.store_name}",
            # A master has a number, too, for the day when it becomes a slave.
            "brokerId": str(place.number or self._slaves + 1) if self._slaves else "0",
            **kept,
            **self._broker_settings,
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


def _is_slave(broker: Broker) -> bool:
    return broker.live.current.identity.is_slave


def _kept_in(path: str | None) -> dict[str, str]:
    """What was changed while the servers ran."""
    if path is None or not Path(path).exists():
        return {}
    return parse_properties(decode_file(Path(path).read_bytes()))
