"""Settings of a producer, under RocketMQ's keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting
from cometmq.client.client_config import ClientConfig, check_bounds
from cometmq.client.core.send.fault_tracker import SERIES
from cometmq.client.core.send.send_retry import RETRIED_CODES
from cometmq.client.trace_config import TraceConfig
from cometmq.model.flags import COMPRESSION_LZ4, COMPRESSION_ZLIB, COMPRESSION_ZSTD
from cometmq.model.names import AUTO_CREATE_TOPIC, topic_fault

COMPRESSIONS: Final = {
    "ZLIB": COMPRESSION_ZLIB,
    "LZ4": COMPRESSION_LZ4,
    "ZSTD": COMPRESSION_ZSTD,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    send_timeout_ms: int = setting(
        "sendMsgTimeout", "Timeout of a send, including all attempts.", default=3000, low=1
    )
    attempt_timeout_ms: int = setting(
        "sendMsgMaxTimeoutPerRequest",
        "Timeout of one attempt; -1: all the time that is left.",
        default=-1,
        low=-1,
    )
    retries: int = setting(
        "retryTimesWhenSendFailed", "Number of retries of a send.", default=2, low=0, high=100
    )
    background_retries: int = setting(
        "retryTimesWhenSendAsyncFailed",
        "Number of retries of a send in the background.",
        default=2,
        low=0,
        high=100,
    )
    retry_another_broker_when_not_stored_ok: bool = setting(
        "retryAnotherBrokerWhenNotStoreOK",
        "Send again if a message is stored, but its flush or replica was not confirmed. Consumers "
        "may then get it twice.",
        default=False,
    )
    message_bytes_max: int = setting(
        "maxMessageSize", "Maximum size of a body.", default=4 * 1024 * 1024, low=1
    )
    compress_from_bytes: int = setting(
        "compressMsgBodyOverHowmuch",
        "Bodies of at least this size are compressed.",
        default=4096,
        low=1,
    )
    compression: str = setting(
        "compressType",
        "Compression format. Consumers before RocketMQ 5 can only read ZLIB.",
        default="ZLIB",
        choices=tuple(COMPRESSIONS),
    )
    create_topic_key: str = setting(
        "createTopicKey",
        "The topic whose brokers create unknown topics on their first message.",
        default=AUTO_CREATE_TOPIC,
    )
    default_topic_queue_count: int = setting(
        "defaultTopicQueueNums",
        "Number of queues of a topic that is created this way.",
        default=4,
        low=1,
    )
    latency_fault: bool = setting(
        "sendLatencyFaultEnable",
        "Avoid slow and failing brokers for a while.",
        default=False,
    )
    latency_fault_series: str = setting(
        "sendLatencyFaultSeries",
        "Use the back-off times of RocketMQ 4.9 (up to 10 minutes) or 5 (up to 30 seconds).",
        default="5",
        choices=tuple(SERIES),
    )
    in_flight_max: int = setting(
        "backPressureForAsyncSendNum",
        "Maximum number of sends in the background; further ones fail at once.",
        default=10_000,
        low=1,
    )
    in_flight_bytes_max: int = setting(
        "backPressureForAsyncSendSize",
        "Maximum total size of their bodies; a single larger body is sent alone.",
        default=100 * 1024 * 1024,
        low=1,
    )
    requests_max: int = setting(
        "requestsMax",
        "Maximum number of requests that wait for their reply.",
        default=10_000,
        low=1,
    )
    batch_count_max: int = setting(
        "batchCountMax",
        "Maximum number of messages that send_all puts into one batch.",
        default=1000,
        low=1,
    )
    check_queue_max: int = setting(
        "checkRequestHoldMax",
        "Maximum number of queued transaction checks; the broker repeats further ones later.",
        default=2000,
        low=1,
    )
    check_concurrency: int = setting(
        "checkThreadPoolMaxSize",
        "Number of transaction checks answered at the same time.",
        default=1,
        low=1,
        high=1000,
    )
    retried_codes: frozenset[int] = RETRIED_CODES
    """Broker codes after which a send is retried. RocketMQ 5 adds 2 and 1500."""
    trace: TraceConfig = field(default_factory=TraceConfig)
    client: ClientConfig = field(default_factory=ClientConfig)

    def __post_init__(self) -> None:
        check_bounds(self)
        if fault := topic_fault(self.create_topic_key):
            raise ConfigError(f"createTopicKey: {fault}")
        if self.attempt_timeout_ms == 0:
            raise ConfigError("sendMsgMaxTimeoutPerRequest must be -1 or at least 1, not 0")
