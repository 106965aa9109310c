"""Settings of a push consumer, under RocketMQ's keys and with its defaults and ranges."""

from __future__ import annotations

from dataclasses import dataclass, field

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting
from cometmq.client.core.consume.flow_limits import NO_LIMIT, FlowLimits
from cometmq.client.group_config import StartConfig
from cometmq.client.trace_config import TraceConfig

CONCURRENT_RETRIES_MAX = 16
"""What -1 means for ``max_reconsume_times`` of a listener that is not orderly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushConsumerConfig(StartConfig):
    consume_thread_min: int = setting(
        "consumeThreadMin",
        "Accepted for compatibility with RocketMQ's configurations; only consumeThreadMax counts.",
        default=20,
        low=1,
        high=1000,
    )
    consume_thread_max: int = setting(
        "consumeThreadMax",
        "Number of threads, or tasks of an async listener, that consume at the same time.",
        default=20,
        low=1,
        high=1000,
    )
    consume_span_max: int = setting(
        "consumeConcurrentlyMaxSpan",
        "Pulling pauses while the unfinished offsets of a queue are further apart than this.",
        default=2000,
        low=1,
        high=65535,
    )
    pull_threshold_for_queue: int = setting(
        "pullThresholdForQueue",
        "Pulling pauses while a queue has more unfinished messages than this.",
        default=1000,
        low=1,
        high=65535,
    )
    pull_threshold_for_topic: int = setting(
        "pullThresholdForTopic",
        "The same for all queues of a topic that this client owns; -1: no limit.",
        default=NO_LIMIT,
        low=-1,
        high=6553500,
    )
    pull_threshold_size_for_queue: int = setting(
        "pullThresholdSizeForQueue",
        "Pulling pauses while a queue has more MiB of unfinished messages than this.",
        default=100,
        low=1,
        high=1024,
    )
    pull_threshold_size_for_topic: int = setting(
        "pullThresholdSizeForTopic",
        "The same for all queues of a topic that this client owns; -1: no limit.",
        default=NO_LIMIT,
        low=-1,
        high=102400,
    )
    pull_interval_ms: int = setting(
        "pullInterval", "Pause between two pulls of a queue.", default=0, low=0, high=65535
    )
    pull_batch_size: int = setting(
        "pullBatchSize", "Number of messages to ask for in one pull.", default=32, low=1, high=1024
    )
    consume_batch_max: int = setting(
        "consumeMessageBatchMaxSize",
        "Maximum number of messages passed to a batch listener at once.",
        default=1,
        low=1,
        high=1024,
    )
    post_subscription_when_pull: bool = setting(
        "postSubscriptionWhenPull", "Send the subscription with every pull.", default=False
    )
    max_reconsume_times: int = setting(
        "maxReconsumeTimes",
        "Retries before a message goes to the dead letter queue. -1: 16, or unlimited for an "
        "orderly listener.",
        default=-1,
        low=-1,
    )
    suspend_queue_ms: int = setting(
        "suspendCurrentQueueTimeMillis",
        "How long an orderly listener's queue waits after a failure.",
        default=1000,
        low=10,
        high=30000,
    )
    consume_timeout_minutes: int = setting(
        "consumeTimeout",
        "A message that a listener holds for longer than this is sent back for another attempt.",
        default=15,
        low=1,
    )
    await_termination_ms: int = setting(
        "awaitTerminationMillisWhenShutdown",
        "How long close() waits for listeners to finish. RocketMQ does not wait by default.",
        default=30_000,
        low=0,
    )
    handover_ms: int = setting(
        "handoverMillis",
        "How long the old and the new owner of a queue wait for messages in progress before the new"
        " one continues. RocketMQ: 0.",
        default=10_000,
        low=0,
    )
    lock_interval_ms: int = setting(
        "rocketmq.client.rebalance.lockInterval",
        "How often an orderly listener's queue locks are renewed.",
        default=20_000,
        low=1,
    )
    lock_valid_ms: int = setting(
        "rocketmq.client.rebalance.lockMaxLiveTime",
        "How long a queue lock is trusted without being renewed.",
        default=30_000,
        low=1,
    )
    trace: TraceConfig = field(default_factory=TraceConfig)

    def __post_init__(self) -> None:
        StartConfig.__post_init__(self)
        for key, value in (
            ("pullThresholdForTopic", self.pull_threshold_for_topic),
            ("pullThresholdSizeForTopic", self.pull_threshold_size_for_topic),
        ):
            if value == 0:
                raise ConfigError(f"{key} must be at least 1, or -1 for no limit, not 0")

    def limits(self, *, orderly: bool) -> FlowLimits:
        """The limits of one queue, without those of its topic."""
        return FlowLimits(
            count_max=self.pull_threshold_for_queue,
            size_mib_max=self.pull_threshold_size_for_queue,
            span_max=None if orderly else self.consume_span_max,
        )
