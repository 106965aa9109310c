"""The composition root of a broker: builds the parts in order, and stops them in the reverse order.

Read from top to bottom, ``start`` tells what a broker consists of. Nothing here decides anything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

from cometmq.access.door.open_door import check_open_door, check_subjects
from cometmq.base.clock import SystemClock
from cometmq.base.disk import SystemFiles
from cometmq.base.ports import Clock, Files
from cometmq.broker.access.access_room import AccessRoom
from cometmq.broker.cluster_view import ClusterView
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.config_slices import SLAVE
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.controller_client.controller_calls import ControllerCalls
from cometmq.broker.controller_client.controller_client import ControllerClient
from cometmq.broker.controller_client.controller_requests import ControllerRequests
from cometmq.broker.controller_client.hand_over import HandOver
from cometmq.broker.controller_client.identity_file import IdentityFile
from cometmq.broker.controller_client.pass_on import PassOn
from cometmq.broker.core import BrokerCore, open_core
from cometmq.broker.housekeeping import Housekeeping
from cometmq.broker.master_duties import MasterDuties
from cometmq.broker.metrics.metrics_room import MetricsRoom
from cometmq.broker.registration import Registration
from cometmq.broker.replication.acting.member_group import ActingMaster
from cometmq.broker.replication.autoswitch.autoswitch import Autoswitch
from cometmq.broker.replication.metadata_sync import MetadataSync
from cometmq.broker.replication.replication_room import ReplicationRoom
from cometmq.broker.replication.role import Role
from cometmq.broker.request_ports import RequestPorts
from cometmq.broker.rooms import Rooms
from cometmq.broker.table_saver import TableSaver
from cometmq.model.address import join_address, split_address, split_addresses
from cometmq.monitor.monitor import check_open_page
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.dispatcher import Dispatcher

log = logging.getLogger("cometmq.broker")


class Broker:
    """``start`` it once, ``stop`` it once, both on the same event loop. The parts exist between the two.

    Args:
        config_path: the file the config came from; changes made over the network are written into it.
        ignored: RocketMQ's settings that mean nothing here, as given.
    """

    core: BrokerCore
    access: AccessRoom
    rooms: Rooms
    replication: ReplicationRoom
    role: Role
    controller: ControllerClient | None = None
    """None without enableControllerMode."""
    _client: RemotingClient
    _registration: Registration
    _metrics: MetricsRoom

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        files: Files | None = None,
        config_path: str | None = None,
        ignored: Mapping[str, str] | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._files = files or SystemFiles()
        self.live = LiveConfig(
            config, clock=self._clock, files=self._files, path=config_path, ignored=ignored
        )
        self._ports = RequestPorts(config, self._files, self._clock)
        self.live.on_change(lambda changed: self._ports.rates.apply(changed.remoting))
        self._stack = AsyncExitStack()
        self._port = 0

    @property
    def port(self) -> int:
        """The bound port; 0 before the start."""
        return self._port

    @property
    def address(self) -> str:
        """What clients are told to connect to."""
        return join_address(self.live.current.identity.ip1, self._port)

    @property
    def dispatcher(self) -> Dispatcher:
        """What the main port serves."""
        return self._ports.main

    @property
    def metrics_address(self) -> str | None:
        """Where metrics and health are shown; None if nowhere."""
        return self._metrics.monitor.address

    def is_alive(self) -> bool:
        """Whether a watchdog should leave it alone."""
        return self._metrics.monitor.health.is_alive

    def dump(self) -> None:
        """Write down what it is doing."""
        self._metrics.dump()

    async def start(self) -> None:
        """Serve from the return on.

        Raises:
            ConfigError: an address that is none, accounts that cannot be read, or a door that would be open to
                strangers.
            StoreError, CorruptFile: the store cannot be opened; nothing in it was changed.
            RemotingError: a port cannot be had. Nothing is left running.
        """
        _check(self.live.current)
        if self.live.current.controller.is_enabled:
            # Fenced, until the controller says what it is.
            self.live.take_role(SLAVE, 1)
        config = self.live.current
        async with AsyncExitStack() as stack:
            await self._take_port(stack)
            core = self.core = self._open_core(stack)
            access = self.access = await self._open_access(stack)
            saver = TableSaver((core.topics, core.groups, core.filters, core.modes))
            client, cluster, registration = self._join_cluster(stack)
            rooms = self.rooms = Rooms(
                core,
                saved=saver.saved,
                announce=registration.announce,
                queues_of=cluster.readable_queues,
                may_touch=access.check_topic,
                may_publish=access.may_publish,
                account_of=access.account_of,
            )
            rooms.register(self._ports)
            core.store.start()
            stack.push_async_callback(saver.stop)
            saver.start()
            stack.push_async_callback(rooms.functions.stop)
            housekeeping = self._housekeeping()
            stack.push_async_callback(housekeeping.stop)
            housekeeping.start()
            metadata = MetadataSync(
                core=core,
                delays=rooms.schedule,
                timers=rooms.timer.timed,
                sinks=rooms.sink.keeper,
                accounts=access.accounts,
                client=client,
            )
            acting = ActingMaster(
                core=core,
                client=client,
                name_servers=split_addresses(config.network.name_servers),
                config=config.acting,
            )
            switch = Autoswitch(core) if config.controller.is_enabled else None
            door = access.replica_door(client)
            self.replication = ReplicationRoom(core, registration, metadata, acting, switch, door)
            self.replication.register(self._ports)
            duties = MasterDuties(core, rooms.duties)
            self.role = Role(core, duties, registration, self.replication)
            self._meet_controller(client, switch)
            access.watch(self._ports)
            stack.push_async_callback(self.role.stop)
            await self.role.take_up()
            metrics = self._metrics = MetricsRoom(
                core, rooms, self._ports, self.role, registration, self.replication
            )
            metrics.watch(self._ports)
            await self._listen()
            stack.push_async_callback(self.replication.stop)
            stack.push_async_callback(self._ports.drain, core.durability)
            registration.ha_address = await self._listen_for_slaves()
            stack.push_async_callback(self.role.withdraw)
            await self.role.start(is_fenced=self.controller is not None)
            stack.push_async_callback(metrics.monitor.stop)
            await metrics.monitor.start()
            if self.controller is not None:
                stack.push_async_callback(self.controller.stop)
                self.controller.start()
            self._stack = stack.pop_all()
        log.info("broker started name=%s address=%s", config.identity.broker_name, self.address)
        _warn(config)

    async def stop(self) -> None:
        """Leave the name servers, answer what is under way, save and close everything."""
        if self._port:
            await self._stack.aclose()
            self._port = 0
            log.info("broker stopped name=%s", self.live.current.identity.broker_name)

    async def kill(self) -> None:
        """Stop the way a killed process does, as far as others can see: nobody is told or answered.

        The files are closed as at a stop, since this process lives on. For tests.
        """
        if self._port:
            self._registration.forget()
            self._ports.abort("the broker was killed")
            await self.replication.port.stop()
            await self._client.close()
            self.core.store.watermarks.abandon()
            await self.stop()

    async def _take_port(self, stack: AsyncExitStack) -> None:
        stack.push_async_callback(self._ports.stop)
        self._port = self.live.current.network.listen_port
        if not self._port:
            # The records carry the port, so it must be known before the store is opened. Nobody else knows it yet,
            # hence nobody calls before the handlers are in place.
            self._port = await self._ports.listen(self._ports.main, 0)

    def _open_core(self, stack: AsyncExitStack) -> BrokerCore:
        loop = asyncio.get_running_loop()
        core = open_core(
            self.live,
            clock=self._clock,
            files=self._files,
            loop=loop,
            port=self._port,
            reached=self._ports.reached,
            times=self._ports.times,
            schedule=lambda callback: _bring(loop, callback),
        )
        stack.callback(core.store.close)
        return core

    async def _open_access(self, stack: AsyncExitStack) -> AccessRoom:
        access = AccessRoom(self.live, self._clock, self.core.address)
        await access.open()
        access.register(self._ports)
        stack.push_async_callback(access.stop)
        access.start()
        return access

    def _join_cluster(
        self, stack: AsyncExitStack
    ) -> tuple[RemotingClient, ClusterView, Registration]:
        config, core = self.live.current, self.core
        name_servers = split_addresses(config.network.name_servers)
        client = self._client = RemotingClient(
            config=config.remoting_client, tls=config.tls, sign=self.access.sign
        )
        stack.push_async_callback(client.close)
        cluster = ClusterView(
            client=client, name_servers=name_servers, live=self.live, address=core.address
        )
        stack.push_async_callback(cluster.stop)
        registration = self._registration = Registration(
            live=self.live,
            topics=core.topics,
            client=client,
            name_servers=name_servers,
            address=core.address,
        )
        core.creation.created.append(registration.changed)
        core.creation.auto_created.append(cluster.spread)
        return client, cluster, registration

    def _meet_controller(self, client: RemotingClient, switch: Autoswitch | None) -> None:
        config, core = self.live.current, self.core
        requests = ControllerRequests(self.live, lambda: core.store.max_physical)
        if switch is not None:
            identity = config.identity
            file = IdentityFile(
                config.controller.identity_path or config.store.path("brokerIdentity"),
                self._files,
                cluster=identity.cluster_name,
                broker_name=identity.broker_name,
            )
            calls = ControllerCalls(
                client,
                split_addresses(config.controller.addresses),
                identity,
                core.address,
                self._clock,
            )
            controller = ControllerClient(core, switch, calls, file, self.role, self.replication)
            controller.load()
            self.controller = controller
            replication = self.replication
            pass_on = PassOn(
                self.live,
                self.role,
                client,
                self._clock,
                lambda: replication.expected,
                self.access.account_of,
            )
            self._ports.guard(pass_on.guard, pass_on.is_idle)
            self._ports.serve(HandOver(core, controller.standing, pass_on))
            requests = ControllerRequests(
                self.live,
                lambda: core.store.max_physical,
                lambda: switch.epochs.table,
                controller.notice,
            )
        self._ports.serve(requests)

    def _housekeeping(self) -> Housekeeping:
        core, rooms = self.core, self.rooms
        return Housekeeping(
            live=core.live,
            clock=core.clock,
            store=core.store,
            offsets=core.offsets,
            clients=rooms.clients.processor,
            locks=rooms.clients.locks,
            stats=core.stats,
            flow=rooms.send.flow,
            durability=core.durability,
        )

    async def _listen(self) -> None:
        network = self.live.current.network
        if network.listen_port:
            await self._ports.listen(self._ports.main, network.listen_port)
        if network.vip_port is not None:
            await self._ports.listen(self._ports.vip, network.vip_port)

    async def _listen_for_slaves(self) -> str:
        """The address that slaves are told."""
        config = self.live.current
        port = config.replication.port
        if not port and config.network.listen_port:
            port = config.network.listen_port + 1
        bound = await self.replication.start(config.network.bind_address, port)
        return join_address(config.identity.ip2, bound)

    def __repr__(self) -> str:
        identity = self.live.current.identity
        state = f"at {self.address}" if self._port else "stopped"
        return f"<Broker {identity.cluster_name}/{identity.broker_name} {state}>"


def _check(config: BrokerConfig) -> None:
    check_open_door(
        config.access,
        config.network.bind_address,
        log,
        server="broker",
        danger="read, write and delete",
    )
    check_subjects(config.access, config.tls)
    check_open_page(config.monitor, allows_anonymous=config.access.allows_anonymous)
    for address in split_addresses(config.network.name_servers):
        split_address(address)


def _warn(config: BrokerConfig) -> None:
    if not config.network.name_servers:
        log.warning("no name server is configured: clients will not find this broker")


def _bring(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Bring a release of waiting replies from a flush thread to the loop."""
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        # The loop has gone, and with it everybody who waited.
        pass
