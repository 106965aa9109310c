"""The composition root of a controller: builds the parts, starts and stops them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from cometmq.base.clock import SystemClock
from cometmq.base.descriptors import DescriptorShares
from cometmq.base.disk import SystemFiles
from cometmq.base.errors import ConfigError
from cometmq.base.ports import Clock, Files
from cometmq.controller.broker_requests import BrokerRequests
from cometmq.controller.controller_config import ControllerConfig, LiveConfig
from cometmq.controller.elections import Elections
from cometmq.controller.etcd.endpoint import Endpoint, endpoints_of
from cometmq.controller.etcd.etcd_side import EtcdSide
from cometmq.controller.etcd.etcd_store import EtcdStore
from cometmq.controller.fail_over import FailOver
from cometmq.controller.file_store import FileStore
from cometmq.controller.liveness import Liveness
from cometmq.controller.operator_requests import OperatorRequests
from cometmq.controller.peers import Peer, Roster, alone
from cometmq.controller.role_notices import RoleNotices
from cometmq.protocol.codes import RequestCode
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.server import RemotingServer
from cometmq.remoting.tls import TlsConfig, load_tls_config

_log = logging.getLogger("cometmq.controller")

# Refused in normal operation: a set that is like that already, an id that another broker was given, a new group.
_EVERYDAY: Final = frozenset(
    {
        RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET,
        RequestCode.CONTROLLER_APPLY_BROKER_ID,
        RequestCode.CONTROLLER_GET_REPLICA_INFO,
    }
)


class Controller:
    """``start`` it once, ``stop`` it once, both on the same event loop."""

    def __init__(
        self,
        config: ControllerConfig,
        *,
        clock: Clock | None = None,
        files: Files | None = None,
        endpoints: Sequence[Endpoint] | None = None,
    ) -> None:
        """Raises ConfigError. ``endpoints``: those of ``etcdEndpoints``, unless given."""
        clock = clock or SystemClock()
        files = files or SystemFiles()
        self._descriptors = DescriptorShares(files.open_max())
        self.config = LiveConfig(config, files)
        self.store: FileStore | EtcdStore
        self.etcd: EtcdSide | None = None
        if config.etcd.endpoints:
            self.etcd = EtcdSide(
                config.etcd,
                endpoints_of(config.etcd) if endpoints is None else endpoints,
                lambda: self.own_peer,
                lambda: self.fail_over.lead(),
                clock,
            )
            self.store = self.etcd.store
        elif config.store_path:
            self.store = FileStore(config.store_path, files)
        else:
            raise ConfigError("controllerStorePath must name the directory for decisions")
        self.liveness = Liveness(clock.monotonic())
        self.notices = RoleNotices(self.config)
        elections = Elections(
            self.store,
            self.liveness,
            self.config,
            clock,
            self.notices.tell,
            self.notices.prepare,
        )
        self.fail_over = FailOver(
            self.store,
            self.liveness,
            elections,
            self.config,
            clock,
            lambda: self.roster().is_leader,
        )
        self.dispatcher = Dispatcher()
        self.dispatcher.everyday = _EVERYDAY
        BrokerRequests(self.store, self.liveness, elections, clock).register(self.dispatcher)
        OperatorRequests(self.store, self.liveness, self.config, clock, self.roster).register(
            self.dispatcher
        )
        self._remoting: RemotingServer | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}

    @property
    def port(self) -> int:
        """The bound port. Only between ``start`` and ``stop``."""
        assert self._remoting is not None, "the controller does not run"
        return self._remoting.port

    @property
    def own_peer(self) -> Peer:
        """Where brokers find this controller."""
        config = self.config.current
        if config.own_peer is not None:
            return config.own_peer
        port = config.listen_port if self._remoting is None else self._remoting.port
        return Peer(config.self_id or "n0", config.bind_address or "127.0.0.1", port)

    def roster(self) -> Roster:
        """All controllers, and who leads."""
        return alone(self.own_peer) if self.etcd is None else self.etcd.members.roster()

    async def start(self) -> None:
        """Start serving; on return, requests are accepted.

        Raises:
            ConfigError: a file named in the configuration cannot be used.
            StoreError: the decisions cannot be read, or another controller uses them.
            RemotingError: an address cannot be bound. Nothing is left running.
        """
        config = self.config.current
        tls = load_tls_config(config.tls_path) if config.tls_path else TlsConfig()
        remoting = RemotingServer(
            self.dispatcher,
            config=config.remoting,
            tls=tls,
            on_close=self._connection_lost,
            descriptors_below=self._descriptors.connections_below,
        )
        client = RemotingClient(tls=tls, sign=config.inner.sign)
        self.store.open()
        try:
            await remoting.start(config.bind_address, self.own_peer.port)
        except BaseException:
            await self.store.close()
            raise
        self._remoting = remoting
        self.notices.start(client)
        if self.etcd is not None:
            await self.etcd.start()
        self._repeat("brokers", config.scan_interval_ms, self.fail_over.scan_brokers)
        self._repeat("masters", config.master_scan_interval_ms, self.fail_over.scan_masters)
        _log.info(
            "controller started address=%s port=%d groups=%d",
            config.bind_address,
            self.port,
            len(self.store.known()),
        )
        if not config.is_loopback:
            _log.warning(
                "controller listens beyond loopback address=%s: whoever reaches it may change masters",
                config.bind_address or "*",
            )

    async def stop(self) -> None:
        """Close everything. There is nothing to save: each decision was stored before it was told."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._remoting is not None:
            remoting, self._remoting = self._remoting, None
            await remoting.stop()
            _log.info("controller stopped")
        await self.fail_over.stop()
        await self.notices.stop()
        await self.store.close()
        if self.etcd is not None:
            await self.etcd.stop()

    def __repr__(self) -> str:
        state = "stopped" if self._remoting is None else f"port={self._remoting.port}"
        return f"<Controller {state} groups={len(self.store.known())} brokers={len(self.liveness)}>"

    def _connection_lost(self, connection: Connection) -> None:
        # While stopping, all connections are closed; that says nothing about the brokers.
        if self._remoting is not None:
            self.fail_over.connection_lost(connection)

    def _repeat(self, name: str, interval_ms: int, work: Callable[[], None]) -> None:
        if name in self._timers:
            work()
        self._timers[name] = asyncio.get_running_loop().call_later(
            interval_ms / 1000, self._repeat, name, interval_ms, work
        )
