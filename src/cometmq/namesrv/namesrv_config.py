"""Settings of a name server, with RocketMQ's keys where it has one."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from cometmq.access.access_config import ServerAccessConfig
from cometmq.base.errors import ConfigError
from cometmq.base.live_settings import Schema
from cometmq.base.log_rates import LogLimits
from cometmq.base.settings import Row, rows, setting
from cometmq.model.address import split_address, split_addresses
from cometmq.model.route import QUEUES_MAX as ROUTE_QUEUES_MAX
from cometmq.model.topic import QUEUES_MAX
from cometmq.monitor.monitor_config import MonitorConfig
from cometmq.namesrv.known_keys import OTHER_KEYS
from cometmq.protocol.bodies.register import TOPICS_MAX
from cometmq.remoting.remoting_config import RemotingServerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressServiceConfig:
    """The HTTP service from which clients without a configured address get the list of name servers."""

    port: int = setting(
        "addressServicePort",
        "HTTP port of the address service; 0 leaves it off. RocketMQ's clients expect 8080.",
        default=0,
        low=0,
        high=65535,
    )
    addresses: str = setting(
        "addressServiceAddresses",
        "Addresses that it answers with, like 10.0.0.1:9876;10.0.0.2:9876; empty: this server "
        "alone.",
        default="",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesrvConfig:
    bind_address: str = setting(
        "bindAddress",
        "Address to listen on. Beyond loopback, the name server needs accounts, or allowAnonymous=true.",
        default="127.0.0.1",
    )
    listen_port: int = setting("listenPort", "Port to listen on.", default=9876, low=0, high=65535)
    kv_path: str = setting(
        "kvConfigPath",
        "File of the key-value config; mqnamesrv uses ~/namesrv/kvConfig.json. Empty: in memory "
        "only.",
        default="",
    )
    config_path: str = setting(
        "configStorePath",
        "File that settings changed over the network are written to: the one given with -c.",
        default="",
    )
    scan_interval_ms: int = setting(
        "scanNotActiveBrokerInterval",
        "Milliseconds between two scans for brokers that have gone silent.",
        default=10_000,
        low=100,
        next_start=True,
    )
    order_message_enable: bool = setting(
        "orderMessageEnable",
        "Whether routes include the order configuration of their topic.",
        default=False,
        live=True,
    )
    return_order_config: bool = setting(
        "returnOrderTopicConfigToBroker",
        "Whether the reply to a registration includes the order configuration of all topics.",
        default=True,
        live=True,
    )
    support_acting_master: bool = setting(
        "supportActingMaster",
        "Whether a slave may be listed in place of its lost master.",
        default=False,
        live=True,
    )
    enable_all_topic_list: bool = setting(
        "enableAllTopicList", "Whether all topics may be listed.", default=True, live=True
    )
    enable_topic_list: bool = setting(
        "enableTopicList",
        "Whether topics may be listed by cluster and by unit.",
        default=True,
        live=True,
    )
    notify_min_id_changed: bool = setting(
        "notifyMinBrokerIdChanged",
        "Whether the brokers with the same name are notified when their lowest id changes.",
        default=False,
        live=True,
    )
    delete_missing_topics: bool = setting(
        "deleteTopicWithBrokerRegistration",
        "Whether a topic is removed when its broker no longer registers it.",
        default=False,
        live=True,
    )
    need_wait_for_service: bool = setting(
        "needWaitForService",
        "Whether routes are refused for a while after the start, until all brokers have had time to"
        " register.",
        default=False,
        live=True,
    )
    wait_seconds: int = setting(
        "waitSecondsForService", "How many seconds that takes.", default=45, low=0, live=True
    )
    broker_takeover: bool = setting(
        "brokerTakeoverEnable",
        "Whether a registration may replace a broker that is alive on its connection, as in "
        "RocketMQ.",
        default=False,
        live=True,
    )
    broker_topics_max: int = setting(
        "brokerTopicsMax",
        "Maximum number of topics that one broker may register; reading them takes about 60 MB per "
        "100,000.",
        default=TOPICS_MAX,
        low=1000,
        high=10_000_000,
        live=True,
    )
    topic_queues_max: int = setting(
        "topicQueuesMax",
        "Maximum number of queues of a topic on one broker; a topic with more is left out of the "
        "routes.",
        default=QUEUES_MAX,
        low=1,
        high=ROUTE_QUEUES_MAX,
        live=True,
    )
    has_controller: bool = setting(
        "enableControllerInNamesrv",
        "Whether mqnamesrv runs a controller, too, with the controller's settings of the same file.",
        default=False,
    )
    tls_path: str = setting(
        "tls.config.file",
        "Properties file with the tls.* settings; empty: plain text only.",
        default="",
    )
    address_service: AddressServiceConfig = field(default_factory=AddressServiceConfig)
    access: ServerAccessConfig = field(default_factory=ServerAccessConfig)
    remoting: RemotingServerConfig = field(default_factory=RemotingServerConfig)
    log: LogLimits = field(default_factory=LogLimits)
    monitor: MonitorConfig = field(default_factory=MonitorConfig)

    def __post_init__(self) -> None:
        for address in split_addresses(self.address_service.addresses):
            try:
                split_address(address)
            except ValueError as error:
                raise ConfigError(f"addressServiceAddresses: {error}") from None

    @property
    def account_directory(self) -> str:
        """Next to the key-value config, unless accountPath says otherwise."""
        return posixpath.dirname(self.kv_path)


@cache
def namesrv_rows() -> Mapping[str, Row]:
    """Every row of the name server by key, in order of declaration."""
    return {row.key: row for row in rows(NamesrvConfig)}


SCHEMA: Final = Schema(
    config_class=NamesrvConfig,
    rows=namesrv_rows(),
    others=OTHER_KEYS,
    noun="name server",
    file="namesrv.conf",
    logger="cometmq.namesrv",
)


def load_namesrv_config(values: Mapping[str, str]) -> tuple[NamesrvConfig, list[str]]:
    """The configuration, and RocketMQ's keys among ``values`` that have no effect here. Raises ConfigError."""
    return SCHEMA.load(values)


def texts(config: NamesrvConfig) -> dict[str, str]:
    """All settings as strings by key."""
    return SCHEMA.texts(config)
