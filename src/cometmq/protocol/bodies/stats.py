"""Bodies with figures: replies to 202, 208, 303, 315, 317 and 321."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from cometmq.model.ids import Int32, Int64
from cometmq.model.message_queue import MessageQueue
from cometmq.model.subscription import SubscriptionData
from cometmq.protocol import fastjson
from cometmq.protocol.json_body import JsonBody


class TopicOffset(JsonBody):
    min_offset: Int64
    max_offset: Int64
    last_update_timestamp: Int64 = 0


class TopicStats(JsonBody):
    """Reply to 202. RocketMQ 4 leaves the rate out."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.QUEUES

    offset_table: dict[MessageQueue, TopicOffset] = msgspec.field(default_factory=dict)
    topic_put_tps: float | None = None


class OffsetLag(JsonBody):
    """The end of a queue and a group's position in it. ``pull_offset`` came with RocketMQ 5."""

    broker_offset: Int64
    consumer_offset: Int64
    last_timestamp: Int64 = 0
    pull_offset: Int64 | None = None


class ConsumeStats(JsonBody):
    """Reply to 208."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.QUEUES

    consume_tps: float = 0.0
    offset_table: dict[MessageQueue, OffsetLag] = msgspec.field(default_factory=dict)


class BrokerConsumeStats(JsonBody):
    """Reply to 317: one entry per group."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.TABLE

    consume_stats_list: list[dict[str, list[ConsumeStats]]] = msgspec.field(default_factory=list)
    broker_addr: str | None = None
    total_diff: Int64 = 0
    total_inflight_diff: Int64 | None = None


class ConsumeTimeSpan(JsonBody):
    """The three strings repeat the times in readable form, as ``yyyy-MM-dd#HH:mm:ss:SSS``."""

    message_queue: MessageQueue
    min_time_stamp: Int64
    max_time_stamp: Int64
    consume_time_stamp: Int64
    delay_time: Int64
    min_time_stamp_str: str | None = None
    max_time_stamp_str: str | None = None
    consume_time_stamp_str: str | None = None


class ConsumeTimeSpans(JsonBody):
    """Reply to 303."""

    consume_time_span_set: list[ConsumeTimeSpan] = msgspec.field(default_factory=list)


class BrokerStatsItem(JsonBody):
    sum: Int64 = 0
    tps: float = 0.0
    avgpt: float = 0.0


class BrokerStatsData(JsonBody):
    """Reply to 315."""

    stats_minute: BrokerStatsItem = msgspec.field(default_factory=BrokerStatsItem)
    stats_hour: BrokerStatsItem = msgspec.field(default_factory=BrokerStatsItem)
    stats_day: BrokerStatsItem = msgspec.field(default_factory=BrokerStatsItem)


class ConsumeQueueEntry(JsonBody):
    """``eval`` tells whether the group's filter accepts the entry."""

    physic_offset: Int64
    physic_size: Int32
    tags_code: Int64
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


class ConsumeQueueEntries(JsonBody):
    """Reply to 321."""

    queue_data: list[ConsumeQueueEntry] = msgspec.field(default_factory=list)
    max_queue_index: Int64 = 0
    min_queue_index: Int64 = 0
    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None
