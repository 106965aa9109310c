"""The composition root of a controller: builds the parts, starts and stops them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from cometmq.access.door.door import Door
from cometmq.access.door.open_door import check_open_door, check_subjects
from cometmq.base.clock import SystemClock
from cometmq.base.descriptors import DescriptorShares
from cometmq.base.disk import SystemFiles
from cometmq.base.errors import CometError, ConfigError
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
from cometmq.controller.metrics.controller_metrics import (
    SCOPE,
    ControllerMetrics,
    controller_health,
)
from cometmq.controller.operator_requests import OperatorRequests
from cometmq.controller.peers import Peer, Roster, alone
from cometmq.controller.role_notices import RoleNotices
from cometmq.monitor.dump import dump
from cometmq.monitor.loop_lag import LoopLag
from cometmq.monitor.monitor import Monitor, check_open_page
from cometmq.monitor.monitor_config import DISABLE
from cometmq.protocol.codes import RequestCode
from cometmq.remoting.bounds.rates import RateLimits
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
        self.door = Door(config.access, config.store_path, clock)
        self.dispatcher = Dispatcher()
        self.dispatcher.everyday = _EVERYDAY
        self.rates = RateLimits(config.remoting, self.dispatcher.reached, clock.monotonic)
        self.rates.account_of = self.door.account_of
        self.rates.watch(self.dispatcher)
        self.config.on_change.append(lambda changed: self.rates.apply(changed.remoting))
        BrokerRequests(self.store, self.liveness, elections, clock).register(self.dispatcher)
        OperatorRequests(self.store, self.liveness, self.config, clock, self.roster).register(
            self.dispatcher
        )
        times = self.dispatcher.times
        times.is_on = config.monitor.exporter != DISABLE and config.monitor.families.requests
        times.slow_from(config.monitor.slow_ms)
        self.config.on_change.append(lambda changed: times.slow_from(changed.monitor.slow_ms))
        self.metrics = ControllerMetrics(
            store=self.store,
            liveness=self.liveness,
            roster=self.roster,
            times=times,
            reached=self.dispatcher.reached,
            elections=elections.outcomes,
            now=clock.monotonic,
        )
        self._lag = LoopLag()
        self.health = controller_health(self._lag, self._store_fault)
        self._monitor: Monitor | None = None
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
        beside = f"{config.store_path}/dump.txt" if config.store_path else ""
        dump({"controller": self._facts}, config.monitor.dump_path or beside)

    async def start(self) -> None:
        """Start serving; on return, requests are accepted.

        Raises:
            ConfigError: a file named in the configuration cannot be used, or the door would be open to strangers.
            CorruptFile: the accounts cannot be read.
            StoreError: the decisions cannot be read, or another controller uses them.
            RemotingError: an address cannot be bound. Nothing is left running.
        """
        config = self.config.current
        check_open_door(
            config.access, config.bind_address, _log, server="controller", danger="change masters"
        )
        check_open_page(config.monitor, allows_anonymous=config.access.allows_anonymous)
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
        self.store.open()
        try:
            self.door.start(client)
            await remoting.start(config.bind_address, self.own_peer.port)
        except BaseException:
            await self.door.stop()
            await self.store.close()
            raise
        self._remoting = remoting
        self.notices.start(client)
        if self.etcd is not None:
            await self.etcd.start()
        try:
            await self._start_monitor(config)
        except CometError:
            await self.stop()
            raise
        self._repeat("brokers", config.scan_interval_ms, self.fail_over.scan_brokers)
        self._repeat("masters", config.master_scan_interval_ms, self.fail_over.scan_masters)
        _log.info(
            "controller started address=%s port=%d groups=%d",
            config.bind_address,
            self.port,
            len(self.store.known()),
        )

    async def stop(self) -> None:
        """Close everything. There is nothing to save: each decision was stored before it was told."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._monitor is not None:
            await self._monitor.stop()
            self._monitor = None
        if self._remoting is not None:
            remoting, self._remoting = self._remoting, None
            await remoting.stop()
            _log.info("controller stopped")
        await self.door.stop()
        await self.fail_over.stop()
        await self.notices.stop()
        await self.store.close()
        if self.etcd is not None:
            await self.etcd.stop()

    def __repr__(self) -> str:
        state = "stopped" if self._remoting is None else f"port={self._remoting.port}"
        return f"<Controller {state} groups={len(self.store.known())} brokers={len(self.liveness)}>"

    async def _start_monitor(self, config: ControllerConfig) -> None:
        peer = self.own_peer
        monitor = Monitor(
            config.monitor,
            [self.metrics.source],
            common={
                "address": peer.address,
                "group": config.group,
                "peer_id": peer.name,
                "node_type": "controller",
                "node_id": peer.name,
            },
            scope=SCOPE,
            health=self.health,
            lag=self._lag,
        )
        await monitor.start()
        self._monitor = monitor

    def _store_fault(self) -> str | None:
        return None if self.etcd is None else self.etcd.store.fault

    def _facts(self) -> Iterator[str]:
        yield repr(self)
        yield repr(self._remoting)
        yield from (repr(held.group) for held in self.store.known().values())
        yield f"bounds reached: {dict(self.dispatcher.reached.counts)}"
        yield f"not well: {self.health.reasons()}"

    def _connection_lost(self, connection: Connection) -> None:
        self.door.forget(connection)
        self.rates.forget(connection)
        # While stopping, all connections are closed; that says nothing about the brokers.
        if self._remoting is not None:
            self.fail_over.connection_lost(connection)

    def _repeat(self, name: str, interval_ms: int, work: Callable[[], None]) -> None:
        if name in self._timers:
            work()
        self._timers[name] = asyncio.get_running_loop().call_later(
            interval_ms / 1000, self._repeat, name, interval_ms, work
        )
