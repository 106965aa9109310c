"""What a client reports about itself to an operator: replies to 307 and 309."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar

import msgspec

from cometmq.model.ids import Int32, Int64
from cometmq.model.message_queue import MessageQueue
from cometmq.model.subscription import SubscriptionData
from cometmq.protocol import fastjson
from cometmq.protocol.json_body import JsonBody


class ProcessQueueInfo(JsonBody):
    """State of a queue that a client consumes. ``droped`` is RocketMQ's spelling."""

    commit_offset: Int64 = 0
    cached_msg_min_offset: Int64 = 0
    cached_msg_max_offset: Int64 = 0
    cached_msg_count: Int32 = 0
    cached_msg_size_in_mib: Int32 = msgspec.field(name="cachedMsgSizeInMiB", default=0)
    transaction_msg_min_offset: Int64 = 0
    transaction_msg_max_offset: Int64 = 0
    transaction_msg_count: Int32 = 0
    locked: bool = False
    try_unlock_times: Int64 = 0
    last_lock_timestamp: Int64 = 0
    droped: bool = False
    last_pull_timestamp: Int64 = 0
    last_consume_timestamp: Int64 = 0


class PopProcessQueueInfo(JsonBody):
    wait_ack_count: Int32 = 0
    droped: bool = False
    last_pop_timestamp: Int64 = 0


class ConsumeStatus(JsonBody):
    """Rates of one topic, per second; times in milliseconds."""

    pull_rt: float = msgspec.field(name="pullRT", default=0.0)
    pull_tps: float = msgspec.field(name="pullTPS", default=0.0)
    consume_rt: float = msgspec.field(name="consumeRT", default=0.0)
    consume_ok_tps: float = msgspec.field(name="consumeOKTPS", default=0.0)
    consume_failed_tps: float = msgspec.field(name="consumeFailedTPS", default=0.0)
    consume_failed_msgs: Int64 = 0


class ConsumerRunningInfo(JsonBody):
    """Reply to 307. The pop table and the user's own strings came with RocketMQ 5."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.QUEUES

    properties: dict[str, str] = msgspec.field(default_factory=dict)
    subscription_set: list[SubscriptionData] = msgspec.field(default_factory=list)
    mq_table: dict[MessageQueue, ProcessQueueInfo] = msgspec.field(default_factory=dict)
    mq_pop_table: dict[MessageQueue, PopProcessQueueInfo] | None = None
    status_table: dict[str, ConsumeStatus] = msgspec.field(default_factory=dict)
    user_consumer_info: dict[str, Any] | None = None
    jstack: str | None = None


class ConsumeResult(StrEnum):
    CR_SUCCESS = "CR_SUCCESS"
    CR_LATER = "CR_LATER"
    CR_ROLLBACK = "CR_ROLLBACK"
    CR_COMMIT = "CR_COMMIT"
    CR_THROW_EXCEPTION = "CR_THROW_EXCEPTION"
    CR_RETURN_NULL = "CR_RETURN_NULL"


class ConsumeDirectlyResult(JsonBody):
    """Reply to 309. ``spentTimeMills`` is RocketMQ's spelling."""

    order: bool = False
    auto_commit: bool = True
    consume_result: ConsumeResult | None = None
    remark: str | None = None
    spent_time_mills: Int64 = 0
