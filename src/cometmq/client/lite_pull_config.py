"""Settings of a lite pull consumer, under RocketMQ's keys and with its defaults.

RocketMQ's ``pullThreadNums`` has no counterpart: every queue has its own task, which needs no thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting
from cometmq.client.client_config import ClientConfig, check_bounds
from cometmq.client.consume_timestamp import start_ms
from cometmq.client.core.consume.assigned_queues import CacheLimits
from cometmq.client.core.consume.rebalance import find_strategy
from cometmq.model.allocation import Strategy
from cometmq.model.consumption import ConsumeFromWhere, MessageModel

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LitePullConfig:
    message_model: str = setting(
        "messageModel",
        "CLUSTERING: each message goes to one consumer of the group; BROADCASTING: to every "
        "consumer.",
        default=MessageModel.CLUSTERING.value,
        choices=tuple(model.value for model in MessageModel),
    )
    consume_from_where: str = setting(
        "consumeFromWhere",
        "Where a new group starts in a queue.",
        default=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET.value,
        choices=tuple(where.value for where in ConsumeFromWhere),
    )
    consume_timestamp: str = setting(
        "consumeTimestamp",
        "Where CONSUME_FROM_TIMESTAMP starts: local time as yyyyMMddHHmmss. Empty: half an hour before the start.",
        default="",
    )
    pull_batch_size: int = setting(
        "pullBatchSize",
        "Number of messages to ask for in one pull, and the maximum that one poll returns.",
        default=10,
        low=1,
        high=1024,
    )
    pull_threshold_for_all: int = setting(
        "pullThresholdForAll",
        "Pulling pauses while more messages than this wait to be polled.",
        default=10_000,
        low=1,
    )
    pull_threshold_for_queue: int = setting(
        "pullThresholdForQueue",
        "Pulling pauses while more messages than this of one queue wait to be polled.",
        default=1000,
        low=1,
        high=65535,
    )
    pull_threshold_size_for_queue: int = setting(
        "pullThresholdSizeForQueue",
        "Pulling pauses while more MiB than this of one queue wait to be polled.",
        default=100,
        low=1,
        high=1024,
    )
    consume_span_max: int = setting(
        "consumeMaxSpan",
        "Pulling pauses while the waiting offsets of a queue are further apart than this.",
        default=2000,
        low=1,
        high=65535,
    )
    poll_timeout_ms: int = setting(
        "pollTimeoutMillis", "How long a poll waits by default.", default=5000, low=0
    )
    auto_commit: bool = setting(
        "autoCommit", "Commit automatically what the previous poll returned.", default=True
    )
    auto_commit_interval_ms: int = setting(
        "autoCommitIntervalMillis", "How often to commit automatically.", default=5000, low=1000
    )
    topic_check_interval_ms: int = setting(
        "topicMetadataCheckIntervalMillis",
        "How often watched topics are checked for new queues.",
        default=30_000,
        low=1,
    )
    suspend_ms: int = setting(
        "brokerSuspendMaxTimeMillis",
        "How long a broker may hold a pull until there is a message.",
        default=20_000,
        low=1,
    )
    suspended_timeout_ms: int = setting(
        "consumerTimeoutMillisWhenSuspend",
        "Timeout of a pull in total. Must be longer than brokerSuspendMaxTimeMillis.",
        default=30_000,
        low=1,
    )
    pull_error_delay_ms: int = setting(
        "pullTimeDelayMillsWhenException", "Pause after a failed pull.", default=1000, low=1
    )
    rebalance_interval_ms: int = setting(
        "rocketmq.client.rebalance.waitInterval",
        "How often the queues are rebalanced even if nothing has changed.",
        default=20_000,
        low=1,
    )
    local_offset_directory: str = setting(
        "rocketmq.client.localOffsetStoreDir",
        "Where a broadcasting consumer keeps its positions; empty: .rocketmq_offsets in the home directory.",
        default="",
    )
    allocation: str | Strategy = "AVG"
    """How the group distributes queues; see ``model.allocation``. All consumers of a group must use the same one."""
    client: ClientConfig = field(default_factory=ClientConfig)

    def __post_init__(self) -> None:
        check_bounds(self)
        find_strategy(self.allocation)
        if self.suspended_timeout_ms <= self.suspend_ms:
            raise ConfigError(
                f"consumerTimeoutMillisWhenSuspend {self.suspended_timeout_ms} must be above "
                f"brokerSuspendMaxTimeMillis {self.suspend_ms}"
            )
        self.timestamp_ms(0)

    @property
    def is_broadcast(self) -> bool:
        return self.message_model == MessageModel.BROADCASTING

    @property
    def limits(self) -> CacheLimits:
        return CacheLimits(
            count_all=self.pull_threshold_for_all,
            count_queue=self.pull_threshold_for_queue,
            bytes_queue=self.pull_threshold_size_for_queue * MIB,
            span=self.consume_span_max,
        )

    def timestamp_ms(self, now_ms: int) -> int:
        """The time at which CONSUME_FROM_TIMESTAMP starts. Raises ConfigError if it cannot be parsed."""
        return start_ms(self.consume_timestamp, now_ms)
