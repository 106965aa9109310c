"""The composition root of a name server: builds the parts, starts and stops them."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

from cometmq.access.door.door import Door
from cometmq.access.door.open_door import check_open_door, check_subjects
from cometmq.base.clock import SystemClock
from cometmq.base.descriptors import DescriptorShares
from cometmq.base.disk import SystemFiles
from cometmq.base.errors import CometError
from cometmq.base.ports import Clock, Files
from cometmq.model.address import join_address
from cometmq.monitor.dump import dump
from cometmq.monitor.loop_lag import LoopLag
from cometmq.monitor.metrics import Source
from cometmq.monitor.monitor import Monitor, check_open_page
from cometmq.monitor.monitor_config import DISABLE
from cometmq.namesrv.address_service import AddressService
from cometmq.namesrv.claims import ANSWER_SECONDS
from cometmq.namesrv.kv import KVConfig
from cometmq.namesrv.live_config import LiveConfig
from cometmq.namesrv.liveness import LiveBroker
from cometmq.namesrv.membership import Membership
from cometmq.namesrv.namesrv_config import NamesrvConfig
from cometmq.namesrv.namesrv_metrics import SCOPE, namesrv_health, namesrv_source
from cometmq.namesrv.processors import BrokerProcessor, ConfigProcessor, RouteProcessor
from cometmq.namesrv.registration import MinIdChange
from cometmq.namesrv.route_table import RouteTable
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.namesrv import NotifyMinBrokerIdChangeHeader
from cometmq.remoting.bounds.rates import RateLimits
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.server import RemotingServer
from cometmq.remoting.tls import TlsConfig, load_tls_config

_log = logging.getLogger("cometmq.namesrv")

_NOTICES_MAX = 256
# Sent by clients in normal operation, and refused while a topic or a key is not known yet.
_EVERYDAY = frozenset({RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.GET_KV_CONFIG})


class NameServer:
    """``start`` it once, ``stop`` it once, both on the same event loop."""

    def __init__(
        self,
        config: NamesrvConfig,
        *,
        clock: Clock | None = None,
        files: Files | None = None,
        beside: Sequence[Source] = (),
    ) -> None:
        """Args: beside: metrics of what runs in the same process."""
        clock = clock or SystemClock()
        self._clock = clock
        self._started_at = clock.monotonic()
        files = files or SystemFiles()
        self._descriptors = DescriptorShares(files.open_max())
        self.config = LiveConfig(config, files)
        self.table = RouteTable()
        self.kv = KVConfig(config.kv_path, files)
        self.membership = Membership(self.table, self.config, clock, self._notify, self._ask)
        self.door = Door(config.access, config.account_directory, clock)
        self.dispatcher = Dispatcher()
        self.dispatcher.everyday = _EVERYDAY
        self.rates = RateLimits(config.remoting, self.dispatcher.reached, clock.monotonic)
        self.rates.account_of = self.door.account_of
        self.rates.watch(self.dispatcher)
        self.config.on_change.append(lambda changed: self.rates.apply(changed.remoting))
        BrokerProcessor(
            self.table, self.membership, self.kv, self.config, clock, self.door.identify
        ).register(self.dispatcher)
        RouteProcessor(self.table, self.kv, self.config, clock).register(self.dispatcher)
        ConfigProcessor(self.kv, self.config).register(self.dispatcher)
        times = self.dispatcher.times
        times.is_on = config.monitor.exporter != DISABLE and config.monitor.families.requests
        times.slow_from(config.monitor.slow_ms)
        self.config.on_change.append(lambda changed: times.slow_from(changed.monitor.slow_ms))
        self._beside = beside
        lag = LoopLag()
        self.health = namesrv_health(lag, self._waits_for_brokers)
        self._lag = lag
        self._monitor: Monitor | None = None
        self._remoting: RemotingServer | None = None
        self._address_service: AddressService | None = None
        self._scan_timer: asyncio.TimerHandle | None = None
        self._client: RemotingClient | None = None
        self._notices: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The bound port. Only between ``start`` and ``stop``."""
        assert self._remoting is not None, "the name server does not run"
        return self._remoting.port

    @property
    def address_service_port(self) -> int | None:
        """The bound HTTP port; None if the address service is off."""
        return None if self._address_service is None else self._address_service.port

    @property
    def metrics_address(self) -> str | None:
        """Where metrics and health are shown; None if nowhere."""
        return None if self._monitor is None else self._monitor.address

    def is_alive(self) -> bool:
        """Whether a watchdog should leave it alone."""
        return self.health.is_alive

    def dump(self) -> None:
        """Write down what it is doing."""
        config = self.config.current
        beside = f"{config.account_directory}/dump.txt" if config.account_directory else ""
        dump({"name server": self._facts}, config.monitor.dump_path or beside)

    async def start(self) -> None:
        """Start serving; on return, requests are accepted.

        Raises:
            ConfigError: a file named in the configuration cannot be used, or the door would be open to strangers.
            CorruptFile: the accounts cannot be read.
            RemotingError: an address cannot be bound. Nothing is left running.
        """
        config = self.config.current
        check_open_door(
            config.access, config.bind_address, _log, server="name server", danger="change routes"
        )
        check_open_page(config.monitor, allows_anonymous=config.access.allows_anonymous)
        self.kv.load()
        await self.door.open()
        self.door.register(self.dispatcher)
        tls = load_tls_config(config.tls_path) if config.tls_path else TlsConfig()
        check_subjects(config.access, tls)
        remoting = RemotingServer(
            self.dispatcher,
            config=config.remoting,
            tls=tls,
            on_close=self._connection_lost,
            descriptors_below=self._descriptors.connections_below,
        )
        client = RemotingClient(tls=tls, sign=config.access.inner.sign)
        self.door.start(client)
        try:
            await remoting.start(config.bind_address, config.listen_port)
        except BaseException:
            await self.door.stop()
            raise
        self._remoting, self._client = remoting, client
        try:
            if config.address_service.port:
                await self._start_address_service(config)
            await self._start_monitor(config)
        except CometError:
            await self.stop()
            raise
        self._schedule_scan()
        _log.info("name server started address=%s port=%d", config.bind_address, self.port)

    async def stop(self) -> None:
        """Close everything. There is nothing to save: each change was saved before it was answered."""
        if self._scan_timer is not None:
            self._scan_timer.cancel()
            self._scan_timer = None
        if self._monitor is not None:
            await self._monitor.stop()
            self._monitor = None
        if self._address_service is not None:
            await self._address_service.stop()
            self._address_service = None
        if self._remoting is not None:
            remoting, self._remoting = self._remoting, None
            await remoting.stop()
            _log.info("name server stopped")
        for task in self._notices:
            task.cancel()
        if self._notices:
            await asyncio.wait(self._notices)
        await self.door.stop()
        if self._client is not None:
            await self._client.close()
            self._client = None

    def __repr__(self) -> str:
        state = "stopped" if self._remoting is None else f"port={self._remoting.port}"
        return f"<NameServer {state} {self.table!r}>"

    async def _start_address_service(self, config: NamesrvConfig) -> None:
        service = AddressService(config.address_service, self.port)
        await service.start(config.bind_address)
        self._address_service = service

    async def _start_monitor(self, config: NamesrvConfig) -> None:
        assert self._remoting is not None
        remoting = self._remoting
        source = namesrv_source(
            self.table,
            self.dispatcher.times,
            self.dispatcher.reached,
            lambda: len(remoting.connections),
        )
        monitor = Monitor(
            config.monitor,
            [source, *self._beside],
            common={
                "node_type": "namesrv",
                "node_id": join_address(config.bind_address or socket.gethostname(), self.port),
            },
            scope=SCOPE,
            health=self.health,
            lag=self._lag,
        )
        await monitor.start()
        self._monitor = monitor

    def _waits_for_brokers(self) -> str | None:
        config = self.config.current
        left = config.wait_seconds - (self._clock.monotonic() - self._started_at)
        if not config.need_wait_for_service or left <= 0:
            return None
        return f"no routes for {left:.0f} s more, so that all brokers can register (waitSecondsForService)"

    def _facts(self) -> Iterator[str]:
        yield repr(self)
        yield repr(self._remoting)
        yield f"bounds reached: {dict(self.dispatcher.reached.counts)}"
        yield f"not well: {self.health.reasons()}"

    def _connection_lost(self, connection: Connection) -> None:
        self.door.forget(connection)
        self.rates.forget(connection)
        # While stopping, all connections are closed; that says nothing about the brokers.
        if self._remoting is not None:
            self.membership.connection_lost(connection)

    def _schedule_scan(self) -> None:
        if self._scan_timer is not None:
            self.membership.scan()
        interval = self.config.current.scan_interval_ms / 1000
        self._scan_timer = asyncio.get_running_loop().call_later(interval, self._schedule_scan)

    def _ask(self, broker: LiveBroker) -> bool:
        """Send a request over a broker's connection that every remoting client answers, if only as unknown."""
        if len(self._notices) >= _NOTICES_MAX:
            return False
        connection = broker.connections[0]
        assert isinstance(connection, Connection)
        self._run(self._ask_over(connection, broker))
        return True

    async def _ask_over(self, connection: Connection, broker: LiveBroker) -> None:
        try:
            await connection.call(Command(code=RequestCode.BROKER_HEARTBEAT), ANSWER_SECONDS)
        except CometError as error:
            _log.info("broker silent address=%s reason=%s", broker.address, error)
        else:
            self.membership.answered(broker)

    def _notify(self, change: MinIdChange) -> None:
        """Tell the brokers of a name which of them now has the lowest id (RocketMQ 5)."""
        if not self.config.current.notify_min_id_changed:
            return
        header = NotifyMinBrokerIdChangeHeader(
            min_broker_id=change.min_id,
            broker_name=change.broker_name,
            min_broker_addr=change.min_address,
            offline_broker_addr=change.offline_address,
            ha_broker_addr=change.ha_address,
        )
        for address in change.notify:
            if len(self._notices) >= _NOTICES_MAX:
                _log.warning("notice dropped address=%s reason=too many under way", address)
                continue
            command = Command(
                code=RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, ext=encode_fields(header)
            )
            self._run(self._send_notice(address, command))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    async def _send_notice(self, address: str, command: Command) -> None:
        assert self._client is not None
        try:
            await self._client.oneway(address, command)
        except CometError as error:
            _log.warning("notice not delivered address=%s reason=%s", address, error)
