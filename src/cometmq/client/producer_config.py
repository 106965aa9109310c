"""Settings of a producer, under RocketMQ's keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting
from cometmq.client.config import ClientConfig, check_bounds
from cometmq.client.core.fault_tracker import SERIES
from cometmq.client.core.send_retry import RETRIED_CODES
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
        "sendMsgTimeout", "Time limit of a send, all attempts together.", default=3000, low=1
    )
    attempt_timeout_ms: int = setting(
        "sendMsgMaxTimeoutPerRequest",
        "Time limit of one attempt; -1: all that is left.",
        default=-1,
        low=-1,
    )
    retries: int = setting(
        "retryTimesWhenSendFailed", "Further attempts of a send.", default=2, low=0, high=100
    )
    background_retries: int = setting(
        "retryTimesWhenSendAsyncFailed",
        "Further attempts of a send in the background.",
        default=2,
        low=0,
        high=100,
    )
    retry_another_broker_when_not_stored_ok: bool = setting(
        "retryAnotherBrokerWhenNotStoreOK",
        "Send again when a message is stored, but its flush or replica was not confirmed. "
        "Consumers may then get it twice.",
        default=False,
    )
    message_bytes_max: int = setting(
        "maxMessageSize", "Largest body.", default=4 * 1024 * 1024, low=1
    )
    compress_from_bytes: int = setting(
        "compressMsgBodyOverHowmuch",
        "Bodies from this size on are compressed.",
        default=4096,
        low=1,
    )
    compression: str = setting(
        "compressType",
        "How. Consumers before RocketMQ 5 read ZLIB only.",
        default="ZLIB",
        choices=tuple(COMPRESSIONS),
    )
    create_topic_key: str = setting(
        "createTopicKey",
        "The topic whose brokers create unknown ones at their first message.",
        default=AUTO_CREATE_TOPIC,
    )
    default_topic_queue_count: int = setting(
        "defaultTopicQueueNums", "Queues of a topic created like this.", default=4, low=1
    )
    latency_fault: bool = setting(
        "sendLatencyFaultEnable",
        "Keep away from slow and failing brokers for a while.",
        default=False,
    )
    latency_fault_series: str = setting(
        "sendLatencyFaultSeries",
        "By the numbers of RocketMQ 4.9 (up to 10 minutes) or 5 (up to 30 seconds).",
        default="5",
        choices=tuple(SERIES),
    )
    in_flight_max: int = setting(
        "backPressureForAsyncSendNum",
        "Most sends in the background at once; a further one fails at once.",
        default=10_000,
        low=1,
    )
    in_flight_bytes_max: int = setting(
        "backPressureForAsyncSendSize",
        "Most bytes of bodies in them; one larger body is taken alone.",
        default=100 * 1024 * 1024,
        low=1,
    )
    requests_max: int = setting(
        "requestsMax", "Most requests that wait for their reply.", default=10_000, low=1
    )
    batch_count_max: int = setting(
        "batchCountMax", "Most messages that send_all puts into one batch.", default=1000, low=1
    )
    check_queue_max: int = setting(
        "checkRequestHoldMax",
        "Most transaction checks that wait; the broker repeats a further one later.",
        default=2000,
        low=1,
    )
    check_concurrency: int = setting(
        "checkThreadPoolMaxSize",
        "Transaction checks answered at once.",
        default=1,
        low=1,
        high=1000,
    )
    retried_codes: frozenset[int] = RETRIED_CODES
    """Broker codes after which a send is tried again. RocketMQ 5 adds 2 and 1500."""
    trace: TraceConfig = field(default_factory=TraceConfig)
    client: ClientConfig = field(default_factory=ClientConfig)

    def __post_init__(self) -> None:
        check_bounds(self)
        if fault := topic_fault(self.create_topic_key):
            raise ConfigError(f"createTopicKey: {fault}")
        if self.attempt_timeout_ms == 0:
            raise ConfigError("sendMsgMaxTimeoutPerRequest must be -1 or at least 1, not 0")
