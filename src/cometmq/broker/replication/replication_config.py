"""Settings of masters and slaves, with RocketMQ's keys where it has one."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting
from cometmq.broker.replication.ha_wire import PIECE_BYTES_MAX

MIB = 1024 * 1024

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationConfig:
    """How a log gets from a master to its slaves, and what a send waits for."""

    port: int = setting(
        "haListenPort",
        "Port for slaves. 0 takes the one above listenPort.",
        default=0,
        low=0,
        high=65535,
    )
    master_address: str = setting(
        "haMasterAddress",
        "Replication address of the master, host:port. Empty: the one that the name servers tell.",
        default="",
    )
    allowed_addresses: str = setting(
        "haAllowedAddresses",
        "Addresses or networks (10.0.0.0/24) that slaves may connect from, separated by semicolons. Empty: any; with "
        "accounts, those from which a super user's requests have come lately.",
        default="",
        live=True,
    )
    is_tls: bool = setting(
        "haTlsEnable",
        "Replicate over TLS only: the port for slaves with the tls.server settings, the way to the master with the "
        "tls.client ones. RocketMQ's brokers cannot.",
        default=False,
    )
    slaves_max: int = setting(
        "haConnectionsMax", "Most slaves at a time.", default=16, low=1, high=1024, live=True
    )
    piece_bytes: int = setting(
        "haTransferBatchSize",
        "Most bytes of the log in one frame to a slave.",
        default=256 * 1024,
        low=1024,
        high=PIECE_BYTES_MAX,
        live=True,
    )
    heartbeat_ms: int = setting(
        "haSendHeartbeatInterval",
        "A slave is sent something at least this often, in milliseconds.",
        default=5000,
        low=100,
        live=True,
    )
    silence_ms: int = setting(
        "haHousekeepingInterval",
        "Master or slave, whoever says nothing for so many milliseconds is disconnected.",
        default=20_000,
        low=1000,
        live=True,
    )
    from_last_file: bool = setting(
        "syncFromLastFile",
        "Give a slave with an empty store the last log file only, not the whole log.",
        default=False,
        live=True,
    )
    behind_bytes_max: int = setting(
        "haSlaveFallbehindMax",
        "A slave that lacks more bytes than this does not count for sends.",
        default=256 * MIB,
        low=0,
        live=True,
    )
    wait_ms: int = setting(
        "slaveTimeout",
        "Milliseconds that a send waits for slaves before it is answered with FLUSH_SLAVE_TIMEOUT.",
        default=3000,
        low=1,
        live=True,
    )
    copies: int = setting(
        "inSyncReplicas",
        "Copies of a record, the master's included, that a send to a SYNC_MASTER waits for; at least 2 there.",
        default=1,
        low=1,
        high=1024,
        live=True,
    )
    copies_min: int = setting(
        "minInSyncReplicas",
        "Refuse sends to a SYNC_MASTER while fewer brokers than this, the master included, have the log.",
        default=1,
        low=1,
        high=1024,
        live=True,
    )
    waits_for_all: bool = setting(
        "allAckInSyncStateSet",
        "Let a send to a SYNC_MASTER wait for all slaves that follow closely, not only for inSyncReplicas.",
        default=False,
        live=True,
    )

    def __post_init__(self) -> None:
        _networks(self.allowed_addresses)


def is_allowed(host: str, allowed_addresses: str) -> bool:
    """Whether a slave may connect from the address, as ``haAllowedAddresses`` says."""
    networks = _networks(allowed_addresses)
    if not networks:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        # A port that is open for both kinds shows IPv4 addresses in this form.
        address = address.ipv4_mapped or address
    return any(address in network for network in networks)


@lru_cache(maxsize=16)
def _networks(text: str) -> tuple[Network, ...]:
    """Raises ConfigError."""
    try:
        return tuple(
            ipaddress.ip_network(part.strip(), strict=False)
            for part in text.split(";")
            if part.strip()
        )
    except ValueError as error:
        raise ConfigError(
            f"haAllowedAddresses={text}: expected addresses or networks separated by semicolons: {error}"
        ) from None
