"""The broker's own settings by subject; ``config`` composes them with those of the store and of remoting."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting
from cometmq.model.flags import READ_WRITE
from cometmq.model.route import QUEUES_MAX as ROUTE_QUEUES_MAX
from cometmq.model.topic import QUEUES_MAX

ASYNC_MASTER: Final = "ASYNC_MASTER"
SYNC_MASTER: Final = "SYNC_MASTER"
SLAVE: Final = "SLAVE"

FORM_4: Final = "4.9"
FORM_5: Final = "5.x"

_NAME = re.compile(r"[%|a-zA-Z0-9_-][%|a-zA-Z0-9_.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityConfig:
    """Who this broker is. Never changes while running."""

    cluster_name: str = setting(
        "brokerClusterName", "Cluster the broker belongs to.", default="DefaultCluster"
    )
    broker_name: str = setting(
        "brokerName",
        "Name shared by a master and its slaves; the host name by default.",
        default="",
    )
    broker_id: int = setting("brokerId", "0 is the master, others are slaves.", default=0, low=0)
    role: str = setting(
        "brokerRole",
        "Master that answers before or after its slaves have a message, or slave.",
        default=ASYNC_MASTER,
        choices=(ASYNC_MASTER, SYNC_MASTER, SLAVE),
    )
    ip1: str = setting("brokerIP1", "Address that clients are told to connect to.", default="")
    ip2: str = setting("brokerIP2", "Address that slaves are told to connect to.", default="")
    region_id: str = setting(
        "regionId",
        "Region written into replies and messages.",
        default="DefaultRegion",
        next_start=True,
    )

    def __post_init__(self) -> None:
        # Both become names of topics, and so of directories.
        for key, name in (
            ("brokerClusterName", self.cluster_name),
            ("brokerName", self.broker_name),
        ):
            if name and not _NAME.fullmatch(name):
                raise ConfigError(
                    f"{key} must be made of letters, digits, '_', '-' and '.', not {name!r}"
                )
        if not self.cluster_name:
            raise ConfigError("brokerClusterName must not be empty")

    @property
    def is_slave(self) -> bool:
        return self.role == SLAVE


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """Where the broker listens and whom it tells."""

    bind_address: str = setting(
        "bindAddress",
        "Interface to listen on. Loopback by default; all interfaces when brokerIP1 is set to an address beyond it.",
        default="",
    )
    listen_port: int = setting(
        "listenPort",
        "Port for clients; the VIP port is two below. 0 takes any free port, without a VIP port.",
        default=10911,
        low=0,
        high=65535,
    )
    name_servers: str = setting("namesrvAddr", "Name servers, separated by semicolons.", default="")
    tls_file: str = setting("tls.config.file", "Properties file with the TLS settings.", default="")

    @property
    def vip_port(self) -> int | None:
        return self.listen_port - 2 if self.listen_port > 2 else None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.bind_address)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsConfig:
    """Topics and groups: what is created by itself, and with how many queues."""

    default_queue_count: int = setting(
        "defaultTopicQueueNums",
        "Queues of TBW102, the most an auto-created topic gets.",
        default=8,
        low=1,
        high=65536,
        live=True,
    )
    queues_max: int = setting(
        "topicQueuesMax",
        "Queues that a topic may have on this broker; clients take 262,144 of a topic on all brokers.",
        default=QUEUES_MAX,
        low=1,
        high=ROUTE_QUEUES_MAX,
        live=True,
    )
    auto_create_topic: bool = setting(
        "autoCreateTopicEnable", "Create a topic at the first send.", default=True, live=True
    )
    auto_create_on_all_masters: bool = setting(
        "autoCreateTopicOnAllMasters",
        "Create an auto-created topic on every master of the cluster, not only where the first send went.",
        default=False,
        live=True,
    )
    auto_create_group: bool = setting(
        "autoCreateSubscriptionGroup",
        "Create a subscription group at its first use.",
        default=True,
        live=True,
    )
    topics_max: int = setting(
        "autoCreateTopicsMax",
        "Topics of the broker at which sends create no more. An operator still can (mqadmin updateTopic).",
        default=20_000,
        low=0,
        live=True,
    )
    groups_max: int = setting(
        "autoCreateGroupsMax",
        "Groups of the broker at which their first use creates no more.",
        default=20_000,
        low=0,
        live=True,
    )
    creations_per_connection_max: int = setting(
        "autoCreatePerConnectionMax",
        "Topics and groups that one connection may create by use.",
        default=1000,
        low=0,
        live=True,
    )
    creations_per_second_max: int = setting(
        "autoCreatePerSecondMax",
        "Topics and groups a second that all connections together may create by use; ten times as many at once.",
        default=100,
        low=1,
        live=True,
    )
    cluster_topic: bool = setting(
        "clusterTopicEnable",
        "Make the topic named like the cluster usable.",
        default=True,
        next_start=True,
    )
    broker_topic: bool = setting(
        "brokerTopicEnable",
        "Make the topic named like the broker usable.",
        default=True,
        next_start=True,
    )
    permission: int = setting(
        "brokerPermission",
        "What the whole broker allows: 4 read, 2 write, 6 both.",
        default=READ_WRITE,
        low=0,
        high=7,
        live=True,
    )
    trace_topic: bool = setting(
        "traceTopicEnable", "Create the topic for message traces.", default=False, next_start=True
    )
    trace_topic_name: str = setting(
        "msgTraceTopicName",
        "Name of the topic for message traces.",
        default="RMQ_SYS_TRACE_TOPIC",
        next_start=True,
    )
    trace_on: bool = setting(
        "traceOn", "Tell clients that messages may be traced.", default=True, live=True
    )
    stored_properties: str = setting(
        "storedProperties",
        "As which RocketMQ to store the properties of a sent message. 5.x adds MSG_REGION and TRACE_ON, without "
        "which its consumers write no trace, and keeps WAIT; 4.9 does neither.",
        default=FORM_5,
        choices=(FORM_4, FORM_5),
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumersConfig:
    """Consumer groups: offsets, notifications, where they read."""

    notify_ids_changed: bool = setting(
        "notifyConsumerIdsChangedEnable",
        "Tell the clients of a group when its members change.",
        default=True,
        live=True,
    )
    channel_expiry_ms: int = setting(
        "channelExpiredTimeout",
        "A client without a heartbeat for so long is forgotten.",
        default=120_000,
        low=1000,
        live=True,
    )
    groups_per_connection_max: int = setting(
        "clientGroupsPerConnectionMax",
        "Producer and consumer groups that one connection may be in; a heartbeat with more is refused.",
        default=4096,
        low=1,
        live=True,
    )
    memberships_max: int = setting(
        "clientMembershipsMax",
        "The same, added up over all connections.",
        default=100_000,
        low=1,
        live=True,
    )
    flush_offset_interval_ms: int = setting(
        "flushConsumerOffsetInterval",
        "How often committed offsets are written to disk.",
        default=5000,
        low=100,
        live=True,
    )
    lock_hold_ms: int = setting(
        "rocketmq.broker.rebalance.lockMaxLiveTime",
        "A queue that is consumed in order is free again when its consumer did not renew the lock for so long.",
        default=60_000,
        low=1000,
        next_start=True,
    )
    server_side_reset: bool = setting(
        "useServerSideResetOffset",
        "Tell of reset offsets in the answer to the next pull, as RocketMQ 5 does; no consumer need be online. "
        "Otherwise the clients of the group are told, as by 4.9, and Java's stop for ten seconds.",
        default=True,
        live=True,
    )
    slave_read: bool = setting(
        "slaveReadEnable", "Send slow readers to a slave.", default=False, live=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingConfig:
    """Pulls that wait for a message."""

    long_polling: bool = setting(
        "longPollingEnable", "Hold a pull for as long as it asks.", default=True, live=True
    )
    short_polling_ms: int = setting(
        "shortPollingTimeMills",
        "How long a pull is held while long polling is off.",
        default=1000,
        low=1,
        live=True,
    )
    lite_pull: bool = setting(
        "litePullMessageEnable", "Answer pulls of lite pull consumers.", default=True, live=True
    )
    parked_max: int = setting(
        "pullThreadPoolQueueCapacity",
        "Most pulls held at once; a further one is answered at once.",
        default=100_000,
        low=1,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriesConfig:
    """Looking messages up by key."""

    unique_count_max: int = setting(
        "defaultQueryMaxNum",
        "Most messages a query by unique key returns.",
        default=32,
        low=1,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleConfig:
    """Delayed messages; their levels are a setting of the store."""

    flush_offset_interval_ms: int = setting(
        "flushDelayOffsetInterval",
        "How often it is written to disk how far the delay levels have been delivered.",
        default=10_000,
        low=100,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsConfig:
    """Messages that are delivered if a transaction of their sender succeeds."""

    is_rejected: bool = setting(
        "rejectTransactionMessage", "Refuse messages of transactions.", default=False, live=True
    )
    timeout_ms: int = setting(
        "transactionTimeOut",
        "Age from which a producer is asked what became of a transaction nobody ended.",
        default=6000,
        low=0,
        live=True,
    )
    check_interval_ms: int = setting(
        "transactionCheckInterval",
        "How often to look for such transactions.",
        default=60_000,
        low=100,
        live=True,
    )
    check_max: int = setting(
        "transactionCheckMax",
        "How often to ask about one; then its message goes to TRANS_CHECK_MAX_TIME_TOPIC.",
        default=15,
        low=1,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RepliesConfig:
    """Replies to requests, which the broker pushes to whoever asked."""

    is_stored: bool = setting(
        "storeReplyMessageEnable",
        "Also store replies in the reply topic of the cluster.",
        default=True,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowControlConfig:
    """When the broker says that it is busy."""

    fast_failure: bool = setting(
        "brokerFastFailureEnable",
        "Refuse requests that waited too long instead of serving them late.",
        default=True,
        live=True,
    )
    send_wait_ms_max: int = setting(
        "waitTimeMillsInSendQueue", "Longest wait of a send.", default=200, low=1, live=True
    )
    pull_wait_ms_max: int = setting(
        "waitTimeMillsInPullQueue", "Longest wait of a pull.", default=5000, low=1, live=True
    )
    lite_pull_wait_ms_max: int = setting(
        "waitTimeMillsInLitePullQueue",
        "Longest wait of a pull of a lite pull consumer.",
        default=5000,
        low=1,
        live=True,
    )
    heartbeat_wait_ms_max: int = setting(
        "waitTimeMillsInHeartbeatQueue",
        "Longest wait of a heartbeat.",
        default=31_000,
        low=1,
        live=True,
    )
    transaction_wait_ms_max: int = setting(
        "waitTimeMillsInTransactionQueue",
        "Longest wait of a transaction's outcome; the producer of one that is refused is asked later.",
        default=3000,
        low=1,
        live=True,
    )
    ack_wait_ms_max: int = setting(
        "waitTimeMillsInAckQueue",
        "Longest wait of an acknowledgement of POP consumers.",
        default=3000,
        low=1,
        live=True,
    )
    page_cache_busy_ms: int = setting(
        "osPageCacheBusyTimeOutMills",
        "An append that takes longer means that the disk is busy.",
        default=1000,
        low=1,
        live=True,
    )
    sends_waiting_max: int = setting(
        "sendThreadPoolQueueCapacity",
        "Most sends that wait for the disk or for slaves at once.",
        default=10_000,
        low=1,
        live=True,
    )
    has_unflushed_limit: bool = setting(
        "transientStorePoolEnable",
        "Bound what is written but not on disk to transientStorePoolSize log files. RocketMQ writes to buffers of its"
        " own then; here the page cache has it in any case.",
        default=False,
        live=True,
    )
    unflushed_files_max: int = setting(
        "transientStorePoolSize",
        "How many log files, with transientStorePoolEnable.",
        default=5,
        low=1,
        live=True,
    )
    accept_sends_from_ms: int = setting(
        "startAcceptSendRequestTimeStamp",
        "Sends are refused before this time (milliseconds since 1970).",
        default=0,
        low=0,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationConfig:
    """How the broker announces itself to name servers."""

    period_ms: int = setting(
        "registerNameServerPeriod",
        "How often to register; kept within 10 and 60 seconds.",
        default=30_000,
        low=1,
        live=True,
    )
    timeout_ms: int = setting(
        "registerBrokerTimeoutMills",
        "How long to wait for a name server.",
        default=6000,
        low=100,
        live=True,
    )
    force: bool = setting(
        "forceRegister",
        "Register even when the name server has the same data version.",
        default=True,
        live=True,
    )
    compressed: bool = setting(
        "compressedRegister", "Compress the registration body.", default=False, live=True
    )


def is_loopback(address: str) -> bool:
    """Whether an address can only be reached from this machine. A name counts as reachable from elsewhere."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
