"""Settings of a controller, with RocketMQ's keys where it has one."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from cometmq.access.access_config import ServerAccessConfig
from cometmq.base.errors import ConfigError, UsageError
from cometmq.base.live_settings import LiveSettings, Schema
from cometmq.base.log_rates import LogLimits
from cometmq.base.ports import Files
from cometmq.base.settings import Row, rows, setting
from cometmq.controller.etcd.etcd_config import EtcdConfig
from cometmq.controller.known_keys import OTHER_KEYS
from cometmq.controller.peers import Peer
from cometmq.model.address import split_address, split_addresses
from cometmq.monitor.monitor_config import MonitorConfig
from cometmq.remoting.remoting_config import RemotingServerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    bind_address: str = setting(
        "bindAddress",
        "Address to listen on. Beyond loopback, the controller needs accounts, or allowAnonymous=true.",
        default="127.0.0.1",
    )
    listen_port: int = setting(
        "listenPort",
        "Port to listen on, unless controllerDLegerPeers names one.",
        default=9878,
        low=0,
        high=65535,
    )
    group: str = setting(
        "controllerDLegerGroup", "Name of the group of controllers.", default="DefaultGroup"
    )
    peers: str = setting(
        "controllerDLegerPeers",
        "Controllers as name-host:port, like n0-192.0.2.10:9878: where brokers find them. More than this one only "
        "with etcdEndpoints.",
        default="",
    )
    self_id: str = setting(
        "controllerDLegerSelfId", "Name of this controller among the peers.", default="n0"
    )
    kind: str = setting(
        "controllerType", "How decisions are kept; RocketMQ's jRaft is refused.", default="DLedger"
    )
    store_path: str = setting(
        "controllerStorePath",
        "Directory of decisions.json, without etcdEndpoints; mqcontroller uses ~/DLedgerController.",
        default="",
    )
    config_path: str = setting(
        "configStorePath",
        "File that settings changed over the network are written to: the one given with -c.",
        default="",
    )
    unclean_allowed: bool = setting(
        "enableElectUncleanMaster",
        "Whether a replica that lacks acknowledged messages becomes master if no in-sync replica is alive. Those "
        "messages are lost then.",
        default=False,
        live=True,
    )
    notify_role_changed: bool = setting(
        "notifyBrokerRoleChanged",
        "Whether brokers are told of a new master at once; otherwise they find out within five seconds.",
        default=True,
        live=True,
    )
    scan_interval_ms: int = setting(
        "scanNotActiveBrokerInterval",
        "Milliseconds between two scans for brokers that have gone silent.",
        default=5000,
        low=100,
        next_start=True,
    )
    master_scan_interval_ms: int = setting(
        "scanInactiveMasterInterval",
        "Milliseconds between two searches for groups without a living master.",
        default=5000,
        low=100,
        next_start=True,
    )
    tls_path: str = setting(
        "tls.config.file",
        "Properties file with the tls.* settings; empty: plain text only.",
        default="",
    )
    access: ServerAccessConfig = field(default_factory=ServerAccessConfig)
    etcd: EtcdConfig = field(default_factory=EtcdConfig)
    remoting: RemotingServerConfig = field(default_factory=RemotingServerConfig)
    log: LogLimits = field(default_factory=LogLimits)
    monitor: MonitorConfig = field(default_factory=MonitorConfig)

    def __post_init__(self) -> None:
        if self.kind.lower() == "jraft":
            raise ConfigError(
                "controllerType=jRaft cannot be met: decisions are kept in a file or in etcd here; remove the key"
            )
        for key, text in (
            ("controllerDLegerGroup", self.group),
            ("controllerDLegerSelfId", self.self_id),
        ):
            if any(character in text for character in ":;- "):
                raise ConfigError(f"{key} must not hold a colon, semicolon, dash or blank")
        peer = self.own_peer
        if peer is not None and self.is_loopback and not _is_loopback(peer.host):
            raise ConfigError(
                f"controllerDLegerPeers sends brokers to {peer.host}, but bindAddress={self.bind_address} is reached "
                f"from this machine alone: set bindAddress={peer.host}, or 0.0.0.0 for all networks"
            )

    @property
    def own_peer(self) -> Peer | None:
        """The entry of controllerDLegerPeers; None if it is empty. Raises ConfigError."""
        entries = split_addresses(self.peers)
        if not entries:
            return None
        found = [_peer(entry) for entry in entries]
        if len(found) > 1 and not self.etcd.endpoints:
            raise ConfigError(
                f"controllerDLegerPeers names {len(found)} controllers, which cannot be met: each would decide on its "
                "own, and a group would have several masters. Set etcdEndpoints, or name this one alone"
            )
        for peer in found:
            if peer.name == self.self_id:
                return peer
        raise ConfigError(
            f"controllerDLegerSelfId is {self.self_id}, which controllerDLegerPeers={self.peers} does not name"
        )

    @property
    def is_loopback(self) -> bool:
        return _is_loopback(self.bind_address)


@cache
def controller_rows() -> Mapping[str, Row]:
    """Every row of the controller by key, in order of declaration."""
    return {row.key: row for row in rows(ControllerConfig)}


SCHEMA: Final = Schema(
    config_class=ControllerConfig,
    rows=controller_rows(),
    others=OTHER_KEYS,
    noun="controller",
    file="controller.conf",
    logger="cometmq.controller",
)


class LiveConfig(LiveSettings[ControllerConfig]):
    """The settings of a running controller."""

    def __init__(self, config: ControllerConfig, files: Files) -> None:
        super().__init__(SCHEMA, config, files)


def _peer(entry: str) -> Peer:
    """``n0-127.0.0.1:9878``; a host name may hold dashes, a controller's name not."""
    name, dash, address = entry.partition("-")
    try:
        host, port = split_address(address)
    except UsageError:
        host, port = "", 0
    if not name or not dash or not host:
        raise ConfigError(f"controllerDLegerPeers: expected n0-127.0.0.1:9878, got {entry!r}")
    return Peer(name, host, port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
