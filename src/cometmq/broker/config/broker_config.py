"""The broker's settings: one frozen slice per subject, every field a row with RocketMQ's key.

``load_broker_config`` reads what ``broker.conf`` says, ``config_text`` prints it as GET_BROKER_CONFIG answers.
A part of the broker receives its slice, or ``LiveConfig`` where it must see changes made while running.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from cometmq.access.access_config import AccessConfig
from cometmq.base.errors import ConfigError
from cometmq.base.log_rates import LogLimits
from cometmq.base.properties_file import render_properties
from cometmq.base.setting_keys import sort_keys
from cometmq.base.settings import Row, load, render, rows, value_of
from cometmq.broker.config import local_host
from cometmq.broker.config.config_slices import (
    ConsumersConfig,
    FlowControlConfig,
    IdentityConfig,
    NetworkConfig,
    PollingConfig,
    QueriesConfig,
    RegistrationConfig,
    RepliesConfig,
    ScheduleConfig,
    TopicsConfig,
    TransactionsConfig,
)
from cometmq.broker.config.known_keys import OTHER_KEYS
from cometmq.broker.controller_client.controller_config import ControllerConfig
from cometmq.broker.filters.filter_config import FiltersConfig
from cometmq.broker.pop.pop_config import PopConfig
from cometmq.broker.replication.acting.acting_config import ActingConfig
from cometmq.broker.replication.replication_config import ReplicationConfig
from cometmq.broker.timer.timer_config import TimersConfig
from cometmq.model.address import is_loopback
from cometmq.model.bloom import bloom_filter
from cometmq.monitor.monitor_config import MonitorConfig
from cometmq.remoting.remoting_config import RemotingClientConfig, RemotingServerConfig
from cometmq.remoting.tls import TlsConfig, load_tls_config
from cometmq.store.queues.extended_queue import END_BYTES, UNIT_BYTES_MIN
from cometmq.store.store_config import StoreConfig

LOOPBACK: Final = "127.0.0.1"
ALL_INTERFACES: Final = "0.0.0.0"

ROLE_KEYS: Final = ("brokerRole", "brokerId")
"""What a controller decides, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """All of a broker's settings."""

    identity: IdentityConfig = field(default_factory=IdentityConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    topics: TopicsConfig = field(default_factory=TopicsConfig)
    consumers: ConsumersConfig = field(default_factory=ConsumersConfig)
    filters: FiltersConfig = field(default_factory=FiltersConfig)
    polling: PollingConfig = field(default_factory=PollingConfig)
    pop: PopConfig = field(default_factory=PopConfig)
    queries: QueriesConfig = field(default_factory=QueriesConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    timers: TimersConfig = field(default_factory=TimersConfig)
    transactions: TransactionsConfig = field(default_factory=TransactionsConfig)
    replies: RepliesConfig = field(default_factory=RepliesConfig)
    flow: FlowControlConfig = field(default_factory=FlowControlConfig)
    registration: RegistrationConfig = field(default_factory=RegistrationConfig)
    acting: ActingConfig = field(default_factory=ActingConfig)
    controller: ControllerConfig = field(default_factory=ControllerConfig)
    replication: ReplicationConfig = field(default_factory=ReplicationConfig)
    access: AccessConfig = field(default_factory=AccessConfig)
    store: StoreConfig = field(default_factory=StoreConfig)
    remoting: RemotingServerConfig = field(default_factory=RemotingServerConfig)
    remoting_client: RemotingClientConfig = field(default_factory=RemotingClientConfig)
    tls: TlsConfig = field(default_factory=TlsConfig)
    log: LogLimits = field(default_factory=LogLimits)
    monitor: MonitorConfig = field(default_factory=MonitorConfig)

    def __post_init__(self) -> None:
        if self.controller.is_enabled and self.acting.is_enabled:
            raise ConfigError(
                "enableControllerMode and enableSlaveActingMaster exclude each other: under a controller a slave "
                "becomes the master, and does not stand in for it"
            )
        if self.controller.is_enabled and self.replication.master_address:
            raise ConfigError(
                "haMasterAddress means nothing with enableControllerMode=true: remove it"
            )
        queues, filters = self.store.queues, self.filters
        if queues.extended and filters.calculates_bits:
            bloom = bloom_filter(filters.bloom_expected_count, filters.bloom_error_percent)
            least = UNIT_BYTES_MIN + bloom.bit_count // 8 + END_BYTES
            if queues.extended_file_bytes < least:
                raise ConfigError(
                    f"mappedFileSizeConsumeQueueExt={queues.extended_file_bytes} must be at least {least}, or no unit "
                    "fits; set it higher or expectConsumerNumUseFilter lower"
                )


@cache
def broker_rows() -> Mapping[str, Row]:
    """Every row of the broker by key, in order of declaration."""
    return {row.key: row for row in rows(BrokerConfig)}


def load_broker_config(values: Mapping[str, str]) -> tuple[BrokerConfig, list[str]]:
    """The settings that ``values`` say, with names and addresses filled in from this machine.

    Returns:
        The config, and the keys that RocketMQ knows but that mean nothing here.

    Raises:
        ConfigError: a key that RocketMQ does not know either, one that asks for protection that is not there, or a
            value that does not fit.
    """
    meant, ignored = sort_keys(broker_rows(), OTHER_KEYS, values)
    if meant.get("enableControllerMode", "").strip().lower() == "true":
        # RocketMQ's samples say brokerId=-1 there.
        ignored.extend(key for key in ROLE_KEYS if meant.pop(key, None) is not None)
    config = load(BrokerConfig, meant)
    if config.network.tls_file:
        given = {row.key: meant[row.key] for row in rows(TlsConfig) if row.key in meant}
        tls = load(TlsConfig, given, base=load_tls_config(config.network.tls_file))
        config = dataclasses.replace(config, tls=tls)
    return resolved(config), ignored


def resolved(config: BrokerConfig) -> BrokerConfig:
    """Fill in what depends on the machine: the broker's name, its data directory, where to listen, what to advertise.

    Advertising an address beyond loopback without saying where to listen can only mean to be reached there, so the
    broker then listens everywhere, as RocketMQ does; otherwise it stays on loopback.
    """
    identity, network = config.identity, config.network
    bind_address = network.bind_address
    if not bind_address:
        bind_address = LOOPBACK if is_loopback(identity.ip1 or LOOPBACK) else ALL_INTERFACES
    reachable = identity.ip1 or _reachable_at(bind_address)
    return dataclasses.replace(
        config,
        identity=dataclasses.replace(
            identity,
            broker_name=identity.broker_name or local_host.name(),
            ip1=reachable,
            ip2=identity.ip2 or reachable,
        ),
        network=dataclasses.replace(network, bind_address=bind_address),
        store=dataclasses.replace(
            config.store, root=config.store.root or f"{local_host.home()}/store"
        ),
    )


def config_text(config: BrokerConfig, ignored: Mapping[str, str] | None = None) -> str:
    """All settings but secrets as ``key=value`` lines sorted by key, those without effect as they were given."""
    values = {
        key: render(value_of(config, row))
        for key, row in broker_rows().items()
        if not row.is_secret
    }
    values.update(ignored or {})
    shown = sorted((key, text) for key, text in values.items() if not _is_secret(key))
    return render_properties(dict(shown))


def _is_secret(key: str) -> bool:
    words = ("password", "secret", "credential", "authenticationuser")
    return any(word in key.lower() for word in words)


def _reachable_at(bind_address: str) -> str:
    if bind_address in (ALL_INTERFACES, "::", "*"):
        return local_host.address()
    return LOOPBACK if bind_address == "localhost" else bind_address
