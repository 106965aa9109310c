"""Settings of the message trace, the same for producers and consumers."""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting
from cometmq.client.client_config import check_bounds
from cometmq.model.names import TRACE_TOPIC, topic_fault


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceConfig:
    is_trace_on: bool = setting(
        "enableTrace",
        "Record what happens to each message, for mqadmin queryMsgTraceById.",
        default=False,
    )
    trace_topic: str = setting(
        "traceTopic",
        "Topic for the records. Brokers have the default topic if they are started with "
        "traceTopicEnable.",
        default=TRACE_TOPIC,
    )
    batch_max: int = setting(
        "traceMsgBatchNum",
        "Maximum number of records in one trace message.",
        default=100,
        low=1,
        high=1000,
    )
    queue_max: int = setting(
        "traceQueueMax",
        "Maximum number of records that wait to be sent; further ones are dropped and counted.",
        default=2048,
        low=1,
    )
    flush_interval_ms: int = setting(
        "traceFlushInterval",
        "Maximum time that a record waits for others to be sent with it.",
        default=500,
        low=1,
    )

    def __post_init__(self) -> None:
        check_bounds(self)
        if fault := topic_fault(self.trace_topic):
            raise ConfigError(f"traceTopic: {fault}")
