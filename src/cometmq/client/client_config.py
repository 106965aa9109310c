"""Settings that producers and consumers share, under RocketMQ's keys.

``ClientConfig(name_servers="10.0.0.1:9876;10.0.0.2:9876")`` in a program; ``base.settings.load(ClientConfig, values)``
from a file. Clients with the same client id in one event loop share one set of connections.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from cometmq.base.errors import ConfigError
from cometmq.base.settings import rows, setting, value_of
from cometmq.model.address import split_address, split_addresses
from cometmq.remoting.remoting_config import RemotingClientConfig
from cometmq.remoting.tls import TlsConfig

DEFAULT_INSTANCE: Final = "DEFAULT"
"""The instance name that is replaced by a generated one."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Credentials:
    """The account that requests are signed with; empty means unsigned."""

    access_key: str = setting("accessKey", "Name of the account.", default="")
    secret_key: str = setting(
        "secretKey", "Secret of the account; it never leaves this process.", default=""
    )
    security_token: str = setting("securityToken", "Token of a temporary account.", default="")

    def __post_init__(self) -> None:
        if bool(self.access_key) != bool(self.secret_key):
            raise ConfigError("accessKey and secretKey must be given together")

    @property
    def is_set(self) -> bool:
        return bool(self.access_key)

    def __repr__(self) -> str:
        return f"Credentials(access_key={self.access_key!r}, secret_key=...)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    name_servers: str = setting(
        "rocketmq.namesrv.addr",
        "Name servers like 10.0.0.1:9876;10.0.0.2:9876. Empty: the environment variable NAMESRV_ADDR, "
        "else the address service.",
        default="",
    )
    address_service: str = setting(
        "rocketmq.namesrv.domain",
        "Host[:port] of an HTTP service that returns the addresses of the name servers (default "
        "port 8080). RocketMQ asks jmenv.tbsite.net by default; we ask nobody.",
        default="",
    )
    address_service_group: str = setting(
        "rocketmq.namesrv.domain.subgroup", "Last part of the service's path.", default="nsaddr"
    )
    namespace: str = setting(
        "namespace", "Prefix of topic and group names on the wire.", default=""
    )
    client_ip: str = setting(
        "clientIP", "First part of the client id; empty: this machine's address.", default=""
    )
    instance_name: str = setting(
        "instanceName",
        "Second part of the client id. DEFAULT is replaced by a globally unique one.",
        default=DEFAULT_INSTANCE,
    )
    unit_name: str = setting("unitName", "Third part of the client id, if any.", default="")
    is_unit_mode: bool = setting(
        "unitMode", "Tell brokers that this client belongs to a unit.", default=False
    )
    poll_name_server_millis: int = setting(
        "pollNameServerInterval", "Milliseconds between two route refreshes.", default=30_000, low=1
    )
    heartbeat_millis: int = setting(
        "heartbeatBrokerInterval",
        "Milliseconds between two heartbeats to the brokers.",
        default=30_000,
        low=1,
    )
    persist_offsets_millis: int = setting(
        "persistConsumerOffsetInterval",
        "Milliseconds between two saves of the consumer's positions.",
        default=5_000,
        low=1,
    )
    address_service_millis: int = setting(
        "addressServiceInterval",
        "Milliseconds between two requests to the address service.",
        default=120_000,
        low=1,
    )
    call_millis: int = setting(
        "mqClientApiTimeout",
        "Timeout in milliseconds of calls that have no timeout of their own.",
        default=3_000,
        low=1,
    )
    credentials: Credentials = field(default_factory=Credentials)
    # Hidden from logs: it holds the passwords of private keys.
    tls: TlsConfig = field(default_factory=TlsConfig, repr=False)
    remoting: RemotingClientConfig = field(default_factory=RemotingClientConfig, repr=False)

    def __post_init__(self) -> None:
        check_bounds(self)
        for address in split_addresses(self.name_servers):
            split_address(address)
        if "%" in self.namespace:
            raise ConfigError(f"namespace {self.namespace!r} holds a %, which ends it on the wire")
        for part in (self.client_ip, self.instance_name, self.unit_name):
            if "@" in part:
                raise ConfigError(f"{part!r} holds an @, which separates the parts of a client id")
        if not self.instance_name:
            raise ConfigError(f"instanceName is empty; leave it out for {DEFAULT_INSTANCE}")

    @property
    def call_seconds(self) -> float:
        return self.call_millis / 1000

    def with_name_servers(self, name_servers: str | Sequence[str] | None) -> Self:
        """A copy with these name servers, if any are given. Raises UsageError for an invalid address."""
        if not name_servers:
            return self
        text = name_servers if isinstance(name_servers, str) else ";".join(name_servers)
        return dataclasses.replace(self, name_servers=text)


def check_bounds(config: object) -> None:
    """Raises ConfigError if a setting of a config object is outside the bounds of its row."""
    for row in rows(type(config)):
        value = value_of(config, row)
        if row.low is not None and value < row.low:
            raise ConfigError(f"{row.key} must be at least {row.low}, not {value}")
        if row.high is not None and value > row.high:
            raise ConfigError(f"{row.key} must be at most {row.high}, not {value}")
        if row.choices and value not in row.choices:
            raise ConfigError(f"{row.key} must be one of {', '.join(row.choices)}, not {value!r}")
