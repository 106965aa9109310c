"""Settings of a lite pull consumer, under RocketMQ's keys and with its defaults.

RocketMQ's ``pullThreadNums`` has no counterpart: every queue has its own task, which needs no thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.base.settings import setting
from cometmq.client.core.consume.assigned_queues import CacheLimits
from cometmq.client.group_config import StartConfig, check_suspension

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LitePullConfig(StartConfig):
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

    def __post_init__(self) -> None:
        StartConfig.__post_init__(self)
        check_suspension(self.suspend_ms, self.suspended_timeout_ms)

    @property
    def limits(self) -> CacheLimits:
        return CacheLimits(
            count_all=self.pull_threshold_for_all,
            count_queue=self.pull_threshold_for_queue,
            bytes_queue=self.pull_threshold_size_for_queue * MIB,
            span=self.consume_span_max,
        )
