"""The root of the room for replication: the port for slaves, the way to the master, and what both are asked about.

A broker has both at hand, since its role may change while it runs. The port for slaves is open in both roles: a slave
gives pieces of its log to whoever has to heal one, but nobody may follow it. ``role`` says when to follow.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Final

from cometmq.base.errors import ConfigError
from cometmq.broker.access.replica_door import ReplicaDoor
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.core import BrokerCore, cut_offsets
from cometmq.broker.registration import MasterPlace, Registration
from cometmq.broker.replication.acting.member_group import ActingMaster
from cometmq.broker.replication.autoswitch.autoswitch import Autoswitch
from cometmq.broker.replication.feed import LogSpan
from cometmq.broker.replication.ha_port import HaPort
from cometmq.broker.replication.ha_requests import HaRequests
from cometmq.broker.replication.ha_wire import ReportReader
from cometmq.broker.replication.heal import Healer
from cometmq.broker.replication.log_peers import LogPeers
from cometmq.broker.replication.metadata_sync import MetadataSync
from cometmq.broker.replication.slave_link import SlaveLink, SlaveWire, plain_wire
from cometmq.broker.request_ports import RequestPorts
from cometmq.model.address import split_address
from cometmq.remoting.certificates.handshakes import Handshakes
from cometmq.store.message_store import MessageStore

log = logging.getLogger("cometmq.broker")

ASK_SECONDS: Final = 0.1
ASK_SECONDS_MAX: Final = 2.0
"""How often the name servers are asked for a master while none is known: soon at first, because the one that was just
elected is about to register, and alone until others follow it."""


class ReplicationRoom:
    """
    Args:
        registration: tells where the master is, and is asked again while nobody can be followed.
        metadata: copies the master's tables.
        acting: knows the other brokers of this name.
        switch: what there is to it under a controller; None without one.
        door: who may connect to the port for slaves, and how a slave proves who it is; None: anybody.

    Raises:
        ConfigError: haTlsEnable without what TLS needs.
    """

    def __init__(
        self,
        core: BrokerCore,
        registration: Registration,
        metadata: MetadataSync,
        acting: ActingMaster,
        switch: Autoswitch | None = None,
        door: ReplicaDoor | None = None,
    ) -> None:
        self._core = core
        self._door = door
        accepting, connecting = _tls(core.live.current)
        self._registration = registration
        self.metadata = metadata
        self.switch = switch
        self._master: MasterPlace | None = None
        self._expected: str | None = None
        self._is_following = False
        self._timer: asyncio.TimerHandle | None = None
        self._ask_seconds = ASK_SECONDS
        self.port = HaPort(
            _StoreLog(core.store),
            core.replicas,
            config=lambda: core.live.current.replication,
            is_master=lambda: not core.live.current.identity.is_slave,
            on_change=self._slaves_changed,
            wire=ReportReader if switch is None else switch.master_wire,
            admits=self._admits,
            handshakes=(
                None
                if accepting is None
                else Handshakes(accepting, core.live.current.remoting, core.reached)
            ),
            reached=core.reached,
        )
        core.store.watermarks.on_append = self.port.log_grew
        self.link = SlaveLink(
            core.store.replica,
            file_bytes=core.store.config.log.file_bytes,
            wire=self._plain_wire() if switch is None else switch.slave_wire,
            cut_tail=self._cut_tail,
            open_log=core.store.open_again,
            on_agreed=self._agreed,
            on_lost=self._lost,
            knock=None if door is None else self._knock,
            tls=connecting,
        )
        self._peers = LogPeers(acting.members, self._master_ha_address)
        self.acting = acting
        self._healer = Healer(
            core.store,
            self._peers,
            file_bytes=core.store.config.log.file_bytes,
            tls=connecting,
        )
        self._requests = HaRequests(core, self.port, self.link, registration)
        registration.on_master = self._found

    def _plain_wire(self) -> SlaveWire:
        store, config = self._core.store, self._core.live.current.replication
        return plain_wire(store.replica, store.config.log.file_bytes, config.silence_ms / 1000)

    @property
    def expected(self) -> str | None:
        """Where the master is, as the controller says; None if it is this broker, or not known."""
        return self._expected

    @property
    def port_address(self) -> str:
        """What slaves are told to connect to."""
        return self._registration.ha_address

    def register(self, ports: RequestPorts) -> None:
        ports.serve(self._requests, self.acting)

    async def start(self, bind_address: str, port: int) -> int:
        """Listen for slaves, and heal what is damaged. The bound port. Raises RemotingError."""
        bound = await self.port.start(bind_address, port)
        self._healer.start()
        self.acting.start()
        return bound

    async def stop(self) -> None:
        await self.acting.stop()
        await self._healer.stop()
        await self._peers.stop()
        await self.port.stop()

    def follow(self) -> None:
        """Follow the master, as soon as it is known."""
        self._is_following = True
        self.metadata.start()
        self._go()

    async def stop_following(self) -> None:
        self._is_following = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self.metadata.stop()
        await self.link.stop()
        self._core.master.note(False)
        self.forget_master()

    def forget_master(self) -> None:
        """Whoever was the master before this broker was it may be a slave by now. The name servers know."""
        self._master = None

    def lead(self) -> None:
        """This broker is the master from now on, with the log as it is. Raises DiskFull, UsageError."""
        if self.switch is not None:
            self.switch.lead()

    def expect(self, address: str | None) -> None:
        """The controller says who the master is. Whomever the name servers name instead, they are wrong or late."""
        if address == self._expected:
            return
        self._expected = address
        if self._master is not None and self._master.address != address:
            self.metadata.follow(None)
            self.link.follow(None)
            self._core.master.note(False)
            self.forget_master()
            self._go()
        self._registration.renew()

    def _found(self, master: MasterPlace) -> None:
        if self.switch is not None and master.address != self._expected:
            return
        if master != self._master:
            self.metadata.follow(None)
            log.info("master found address=%s ha_address=%s", master.address, master.ha_address)
        self._master = master
        self._go()
        if self.link.is_following:
            self._agreed()

    def _go(self) -> None:
        if not self._is_following:
            return
        address = self._core.live.current.replication.master_address or self._known_address()
        self.link.follow(address)
        if address is not None:
            self._ask_seconds = ASK_SECONDS
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._ask_seconds, self._ask)
            self._ask_seconds = min(2 * self._ask_seconds, ASK_SECONDS_MAX)

    def _known_address(self) -> str | None:
        return self._master.ha_address if self._master is not None else None

    def _master_ha_address(self) -> str | None:
        return self.link.master if self._is_following else None

    def _slaves_changed(self) -> None:
        self._core.durability.replicas_changed()
        self._peers.slaves_changed(len(self._core.replicas))

    def _agreed(self) -> None:
        # Not before: the tables of another group's master, or of one that has lost its disk, would replace ours.
        self._core.master.note(True)
        self._core.store.hidden.show_all()
        if self._master is not None:
            self.metadata.follow(self._master.address)

    def _lost(self) -> None:
        # Who answers at the master's address from now on may be another, or the same without its disk. The log has to
        # agree again first.
        self.metadata.follow(None)
        self._core.master.note(False)
        self._registration.renew()

    def _admits(self, host: str, subject: str) -> str | None:
        master = self._master_ha_address()
        if master is not None and split_address(master)[0] == host:
            # It asks for pieces of the log to heal its own.
            return None
        return None if self._door is None else self._door.refusal(host, subject)

    async def _knock(self) -> None:
        if self._door is not None and self._master is not None:
            await self._door.knock(self._master.address)

    def _ask(self) -> None:
        self._timer = None
        self._registration.renew()
        self._go()

    def _cut_tail(self, offset: int, reason: str) -> None:
        end = self._core.store.max_physical
        path = self._core.store.cut_tail(offset)
        if self.switch is not None:
            self.switch.cut(offset)
        log.error(
            "log differed from the master's and was cut from=%d to=%d kept=%s reason=%s",
            offset,
            end,
            path,
            reason,
        )
        # Who follows this broker has what was cut, and must compare again.
        self.port.disconnect("this log was cut")
        cut_offsets(self._core.offsets, self._core.store)
        self.metadata.cut(offset)

    def __repr__(self) -> str:
        return f"<ReplicationRoom slaves={len(self._core.replicas)} master={self._master}>"


def _tls(config: BrokerConfig) -> tuple[ssl.SSLContext | None, ssl.SSLContext | None]:
    """To accept slaves with, and to connect to a master with."""
    if not config.replication.is_tls:
        return None, None
    accepting, connecting = config.tls.live_server_context(), config.tls.live_client_context()
    if accepting is None or connecting is None:
        raise ConfigError(
            "haTlsEnable=true needs a certificate for slaves, and TLS for the way to the master: set "
            "tls.server.certPath, tls.server.keyPath and tls.enable=true"
        )
    return accepting, connecting


class _StoreLog:
    """The store's log as the feed of slaves sees it."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._file_bytes = store.config.log.file_bytes

    @property
    def span(self) -> LogSpan:
        return LogSpan(self._store.min_physical, self._store.max_physical, self._file_bytes)

    def view(self, offset: int, size_bytes: int) -> memoryview | None:
        return self._store.log_view(offset, size_bytes)
