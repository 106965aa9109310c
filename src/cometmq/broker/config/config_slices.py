"""The broker's own settings by subject; ``config`` composes them with those of the store and of remoting."""

from __future__ import annotations

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
    """Who this broker is. While it runs, only its role may change."""

    cluster_name: str = setting(
        "brokerClusterName", "Cluster that the broker belongs to.", default="DefaultCluster"
    )
    broker_name: str = setting(
        "brokerName",
        "Name shared by a master and its slaves; the host name by default.",
        default="",
    )
    slave_id: int = setting(
        "brokerId",
        "Number of a slave, from 1 on, different for each slave of a master. A master is always 0.",
        default=0,
        low=0,
        live=True,
    )
    role: str = setting(
        "brokerRole",
        "A master that answers a send at once (ASYNC_MASTER) or after its slaves have the message "
        "(SYNC_MASTER), or a slave. Changing it while the broker runs promotes or demotes the broker.",
        default=ASYNC_MASTER,
        choices=(ASYNC_MASTER, SYNC_MASTER, SLAVE),
        live=True,
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
        if self.is_slave and self.slave_id == 0:
            raise ConfigError(
                "brokerRole=SLAVE needs a brokerId above 0, another one for each slave of a master"
            )

    @property
    def is_slave(self) -> bool:
        return self.role == SLAVE

    @property
    def broker_id(self) -> int:
        """What the name servers are told: 0 is the master."""
        return self.slave_id if self.is_slave else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """Where the broker listens and whom it tells."""

    bind_address: str = setting(
        "bindAddress",
        "Address to listen on. Loopback by default; all interfaces if brokerIP1 is set to an "
        "address beyond loopback. There, the broker needs accounts, or allowAnonymous=true.",
        default="",
    )
    listen_port: int = setting(
        "listenPort",
        "Port for clients; the VIP port is two below it. 0 takes any free port and has no VIP port.",
        default=10911,
        low=0,
        high=65535,
    )
    name_servers: str = setting("namesrvAddr", "Name servers, separated by semicolons.", default="")
    tls_file: str = setting("tls.config.file", "Properties file with the TLS settings.", default="")

    @property
    def vip_port(self) -> int | None:
        return self.listen_port - 2 if self.listen_port > 2 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsConfig:
    """Topics and groups: what is created by itself, and with how many queues."""

    default_queue_count: int = setting(
        "defaultTopicQueueNums",
        "Queues of TBW102: the maximum for a topic that is created automatically.",
        default=8,
        low=1,
        high=65536,
        live=True,
    )
    queues_max: int = setting(
        "topicQueuesMax",
        "Maximum number of queues of a topic on this broker. Clients accept 262,144 per topic over "
        "all brokers.",
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
        "Create an auto-created topic on every master of the cluster, not only on the one that got "
        "the first send.",
        default=False,
        live=True,
    )
    auto_create_group: bool = setting(
        "autoCreateSubscriptionGroup",
        "Create a subscription group when it is first used.",
        default=True,
        live=True,
    )
    topics_max: int = setting(
        "autoCreateTopicsMax",
        "Number of topics on the broker from which sends create no more. Operators still can "
        "(mqadmin updateTopic).",
        default=20_000,
        low=0,
        live=True,
    )
    groups_max: int = setting(
        "autoCreateGroupsMax",
        "Number of groups on the broker from which first use creates no more.",
        default=20_000,
        low=0,
        live=True,
    )
    creations_per_connection_max: int = setting(
        "autoCreatePerConnectionMax",
        "Maximum number of topics and groups that one connection may create by use.",
        default=1000,
        low=0,
        live=True,
    )
    creations_per_second_max: int = setting(
        "autoCreatePerSecondMax",
        "Topics and groups per second that all connections together may create by use; bursts may "
        "be ten times as large.",
        default=100,
        low=1,
        live=True,
    )
    cluster_topic: bool = setting(
        "clusterTopicEnable",
        "Make the topic with the cluster's name usable.",
        default=True,
        next_start=True,
    )
    broker_topic: bool = setting(
        "brokerTopicEnable",
        "Make the topic with the broker's name usable.",
        default=True,
        next_start=True,
    )
    permission: int = setting(
        "brokerPermission",
        "Permission of the whole broker: 4 read, 2 write, 6 both.",
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
        "Store the properties of a sent message as this version of RocketMQ does. 5.x adds "
        "MSG_REGION and TRACE_ON, which its consumers need to write a trace, and keeps WAIT; 4.9 "
        "does neither.",
        default=FORM_5,
        choices=(FORM_4, FORM_5),
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumersConfig:
    """Consumer groups: offsets, notifications, where they read."""

    notify_ids_changed: bool = setting(
        "notifyConsumerIdsChangedEnable",
        "Notify the clients of a group when its members change.",
        default=True,
        live=True,
    )
    channel_expiry_ms: int = setting(
        "channelExpiredTimeout",
        "Milliseconds without a heartbeat after which a client is removed.",
        default=120_000,
        low=1000,
        live=True,
    )
    groups_per_connection_max: int = setting(
        "clientGroupsPerConnectionMax",
        "Maximum number of producer and consumer groups per connection; a heartbeat with more is "
        "refused.",
        default=4096,
        low=1,
        live=True,
    )
    memberships_max: int = setting(
        "clientMembershipsMax",
        "Maximum number of group memberships over all connections.",
        default=100_000,
        low=1,
        live=True,
    )
    client_id_length_max: int = setting(
        "clientIdLengthMax",
        "Maximum number of characters of a client's id; a heartbeat with a longer one is refused.",
        default=1024,
        low=1,
        live=True,
    )
    subscriptions_of_connection_max: int = setting(
        "clientSubscriptionsMax",
        "Maximum number of subscriptions of all groups of one connection; a heartbeat with more is refused.",
        default=16_384,
        low=1,
        live=True,
    )
    subscription_bytes_max: int = setting(
        "clientSubscriptionBytesMax",
        "Maximum number of bytes of the subscriptions of all connections, 300 each and the texts; a heartbeat that "
        "would exceed it is refused.",
        default=128 * 1024 * 1024,
        low=1024,
        live=True,
    )
    flush_offset_interval_ms: int = setting(
        "flushConsumerOffsetInterval",
        "Milliseconds between two writes of committed offsets to disk.",
        default=5000,
        low=100,
        live=True,
    )
    lock_hold_ms: int = setting(
        "rocketmq.broker.rebalance.lockMaxLiveTime",
        "Milliseconds after which the lock of a queue that is consumed in order expires unless its "
        "consumer renews it.",
        default=60_000,
        low=1000,
        next_start=True,
    )
    server_side_reset: bool = setting(
        "useServerSideResetOffset",
        "Announce reset offsets in the reply to the next pull, as RocketMQ 5 does; no consumer "
        "needs to be online. Otherwise the broker tells the group's clients, as 4.9 does, and Java "
        "clients pause for ten seconds.",
        default=True,
        live=True,
    )
    slave_read: bool = setting(
        "slaveReadEnable", "Redirect slow readers to a slave.", default=False, live=True
    )
    checks_at_slave: bool = setting(
        "offsetCheckInSlave",
        "Let a slave correct the offset of a reader that asks for what the slave does not have. "
        "The reader skips messages that only the master has.",
        default=False,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingConfig:
    """Pulls that wait for a message."""

    long_polling: bool = setting(
        "longPollingEnable", "Hold a pull for as long as it asks.", default=True, live=True
    )
    short_polling_ms: int = setting(
        "shortPollingTimeMills",
        "Milliseconds to hold a pull while long polling is off.",
        default=1000,
        low=1,
        live=True,
    )
    lite_pull: bool = setting(
        "litePullMessageEnable", "Answer pulls of lite pull consumers.", default=True, live=True
    )
    parked_max: int = setting(
        "pullThreadPoolQueueCapacity",
        "Maximum number of pulls held at once; further ones are answered at once.",
        default=100_000,
        low=1,
        live=True,
    )
    parked_of_connection_max: int = setting(
        "clientParkedRequestsMax",
        "Maximum number of pulls, and of pops, held at once for one connection.",
        default=20_000,
        low=1,
        live=True,
    )
    parked_of_queue_max: int = setting(
        "queueParkedPullsMax",
        "Maximum number of pulls held at once that wait for a message of the same queue: each is looked at when one "
        "is stored.",
        default=10_000,
        low=1,
        live=True,
    )
    parked_bytes_max: int = setting(
        "parkedRequestBytesMax",
        "Maximum number of bytes of the pulls, and of the pops, held at once; most take some hundred.",
        default=32 * 1024 * 1024,
        low=1024,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriesConfig:
    """Looking messages up by key."""

    unique_count_max: int = setting(
        "defaultQueryMaxNum",
        "Maximum number of messages that a query by unique key returns.",
        default=32,
        low=1,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleConfig:
    """Delayed messages; their levels are a setting of the store."""

    flush_offset_interval_ms: int = setting(
        "flushDelayOffsetInterval",
        "Milliseconds between two writes of the delivery progress of the delay levels to disk.",
        default=10_000,
        low=100,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsConfig:
    """Messages that are delivered if a transaction of their sender succeeds."""

    is_rejected: bool = setting(
        "rejectTransactionMessage", "Refuse transactional messages.", default=False, live=True
    )
    timeout_ms: int = setting(
        "transactionTimeOut",
        "Age in milliseconds from which the broker asks a producer about the outcome of an open "
        "transaction.",
        default=6000,
        low=0,
        live=True,
    )
    check_interval_ms: int = setting(
        "transactionCheckInterval",
        "Milliseconds between two checks for such transactions.",
        default=60_000,
        low=100,
        live=True,
    )
    check_max: int = setting(
        "transactionCheckMax",
        "How often to ask about one transaction before its message goes to "
        "TRANS_CHECK_MAX_TIME_TOPIC.",
        default=15,
        low=1,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RepliesConfig:
    """Replies to requests, which the broker pushes to whoever asked."""

    is_stored: bool = setting(
        "storeReplyMessageEnable",
        "Also store replies in the cluster's reply topic.",
        default=True,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowControlConfig:
    """When the broker says that it is busy."""

    fast_failure: bool = setting(
        "brokerFastFailureEnable",
        "Refuse requests that have waited too long instead of serving them late.",
        default=True,
        live=True,
    )
    send_wait_ms_max: int = setting(
        "waitTimeMillsInSendQueue",
        "Maximum wait of a send, in milliseconds.",
        default=200,
        low=1,
        live=True,
    )
    pull_wait_ms_max: int = setting(
        "waitTimeMillsInPullQueue",
        "Maximum wait of a pull, in milliseconds.",
        default=5000,
        low=1,
        live=True,
    )
    lite_pull_wait_ms_max: int = setting(
        "waitTimeMillsInLitePullQueue",
        "Maximum wait of a lite pull consumer's pull, in milliseconds.",
        default=5000,
        low=1,
        live=True,
    )
    heartbeat_wait_ms_max: int = setting(
        "waitTimeMillsInHeartbeatQueue",
        "Maximum wait of a heartbeat, in milliseconds.",
        default=31_000,
        low=1,
        live=True,
    )
    transaction_wait_ms_max: int = setting(
        "waitTimeMillsInTransactionQueue",
        "Maximum wait of a transaction's outcome, in milliseconds; if it is refused, the producer "
        "is asked later.",
        default=3000,
        low=1,
        live=True,
    )
    ack_wait_ms_max: int = setting(
        "waitTimeMillsInAckQueue",
        "Maximum wait of a POP consumer's acknowledgement, in milliseconds.",
        default=3000,
        low=1,
        live=True,
    )
    page_cache_busy_ms: int = setting(
        "osPageCacheBusyTimeOutMills",
        "The disk counts as busy if an append takes longer than this, in milliseconds.",
        default=1000,
        low=1,
        live=True,
    )
    sends_waiting_max: int = setting(
        "sendThreadPoolQueueCapacity",
        "Maximum number of sends that wait for the disk or for slaves at once.",
        default=10_000,
        low=1,
        live=True,
    )
    batch_count_max: int = setting(
        "batchMessagesMax",
        "Maximum number of messages in one batch. They are stored in one go, and everybody else waits meanwhile.",
        default=32_768,
        low=1,
        live=True,
    )
    has_unflushed_limit: bool = setting(
        "transientStorePoolEnable",
        "Limit what is written but not yet on disk to transientStorePoolSize log files. RocketMQ "
        "then writes to separate buffers; here it is in the page cache in any case.",
        default=False,
        live=True,
    )
    unflushed_files_max: int = setting(
        "transientStorePoolSize",
        "Number of log files for transientStorePoolEnable.",
        default=5,
        low=1,
        live=True,
    )
    accept_sends_from_ms: int = setting(
        "startAcceptSendRequestTimeStamp",
        "Refuse sends before this time (milliseconds since 1970).",
        default=0,
        low=0,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationConfig:
    """How the broker announces itself to name servers."""

    period_ms: int = setting(
        "registerNameServerPeriod",
        "Milliseconds between two registrations; kept within 10 and 60 seconds.",
        default=30_000,
        low=1,
        live=True,
    )
    timeout_ms: int = setting(
        "registerBrokerTimeoutMills",
        "Milliseconds to wait for a name server.",
        default=6000,
        low=100,
        live=True,
    )
    force: bool = setting(
        "forceRegister",
        "Register even if the name server has the same data version.",
        default=True,
        live=True,
    )
    compressed: bool = setting(
        "compressedRegister", "Compress the registration body.", default=False, live=True
    )
