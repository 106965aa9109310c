"""The composition root of a name server: builds the parts, starts and stops them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from cometmq.base.clock import SystemClock
from cometmq.base.descriptors import DescriptorShares
from cometmq.base.disk import SystemFiles
from cometmq.base.errors import CometError, RemotingError
from cometmq.base.ports import Clock, Files
from cometmq.namesrv.address_service import AddressService
from cometmq.namesrv.claims import ANSWER_SECONDS
from cometmq.namesrv.kv import KVConfig
from cometmq.namesrv.live_config import LiveConfig
from cometmq.namesrv.liveness import LiveBroker
from cometmq.namesrv.membership import Membership
from cometmq.namesrv.namesrv_config import NamesrvConfig
from cometmq.namesrv.processors import BrokerProcessor, ConfigProcessor, RouteProcessor
from cometmq.namesrv.registration import MinIdChange
from cometmq.namesrv.route_table import RouteTable
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.namesrv import NotifyMinBrokerIdChangeHeader
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
        self, config: NamesrvConfig, *, clock: Clock | None = None, files: Files | None = None
    ) -> None:
        clock = clock or SystemClock()
        files = files or SystemFiles()
        self._descriptors = DescriptorShares(files.open_max())
        self.config = LiveConfig(config, files)
        self.table = RouteTable()
        self.kv = KVConfig(config.kv_path, files)
        self.membership = Membership(self.table, self.config, clock, self._notify, self._ask)
        self.dispatcher = Dispatcher()
        self.dispatcher.everyday = _EVERYDAY
        BrokerProcessor(self.table, self.membership, self.kv, self.config, clock).register(
            self.dispatcher
        )
        RouteProcessor(self.table, self.kv, self.config, clock).register(self.dispatcher)
        ConfigProcessor(self.kv, self.config).register(self.dispatcher)
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

    async def start(self) -> None:
        """Start serving; on return, requests are accepted.

        Raises:
            ConfigError: a file named in the configuration cannot be used.
            RemotingError: an address cannot be bound. Nothing is left running.
        """
        config = self.config.current
        self.kv.load()
        tls = load_tls_config(config.tls_path) if config.tls_path else TlsConfig()
        remoting = RemotingServer(
            self.dispatcher,
            config=config.remoting,
            tls=tls,
            on_close=self._connection_lost,
            descriptors_below=self._descriptors.connections_below,
        )
        client = RemotingClient(tls=tls, sign=config.inner.sign)
        await remoting.start(config.bind_address, config.listen_port)
        self._remoting, self._client = remoting, client
        if config.address_service.port:
            try:
                await self._start_address_service(config)
            except RemotingError:
                await self.stop()
                raise
        self._schedule_scan()
        _log.info("name server started address=%s port=%d", config.bind_address, self.port)
        if not config.is_loopback:
            _log.warning(
                "name server listens beyond loopback address=%s: whoever reaches it may change routes",
                config.bind_address or "*",
            )

    async def stop(self) -> None:
        """Close everything. There is nothing to save: each change was saved before it was answered."""
        if self._scan_timer is not None:
            self._scan_timer.cancel()
            self._scan_timer = None
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
        if self._client is not None:
            await self._client.close()
            self._client = None

    def __repr__(self) -> str:
        state = "stopped" if self._remoting is None else f"port={self._remoting.port}"
        return f"<NameServer {state} {self.table!r}>"

    async def _start_address_service(self, config: NamesrvConfig) -> None:
        service = AddressService(config.address_service, self.port)
        try:
            await service.start(config.bind_address)
        except OSError as error:
            raise RemotingError(
                f"cannot listen on {config.bind_address}:{config.address_service.port}"
                f" (addressServicePort): {error.strerror or error}"
            ) from error
        self._address_service = service

    def _connection_lost(self, connection: Connection) -> None:
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
