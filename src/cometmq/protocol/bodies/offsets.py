"""Bodies with offsets by queue: 43, 45, 220 to 223, 308."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from cometmq.model.ids import Int32, Int64
from cometmq.model.message_queue import MessageQueue
from cometmq.model.topic import DataVersion
from cometmq.protocol import fastjson
from cometmq.protocol.json_body import JsonBody


class ConsumerOffsets(JsonBody):
    """Reply to 43, content of ``consumerOffset.json``: offset by queue id, by ``topic@group``."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.TABLE

    offset_table: dict[str, dict[Int32, Int64]] = msgspec.field(default_factory=dict)
    data_version: DataVersion | None = None
    group_topic_map: dict[str, list[str]] | None = None
    pull_offset_table: dict[str, dict[Int32, Int64]] | None = None


class DelayOffsets(JsonBody):
    """Reply to 45, content of ``delayOffset.json``: offset by delay level."""

    offset_table: dict[Int32, Int64] = msgspec.field(default_factory=dict)
    data_version: DataVersion | None = None


class ResetOffsets(JsonBody):
    """Reply to 222 and push 220."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.QUEUES

    offset_table: dict[MessageQueue, Int64] = msgspec.field(default_factory=dict)


class QueueOffset(JsonBody):
    broker_name: str
    offset: Int64
    queue_id: Int32
    topic: str


class ResetOffsetsForC(JsonBody):
    """Push 220 to a C++ client, which cannot read a map keyed by objects."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.QUEUES

    offset_table: list[QueueOffset] = msgspec.field(default_factory=list)


class ConsumerStatus(JsonBody):
    """Replies to 221 (``message_queue_table``) and 223 (``consumer_table``, by client id)."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.QUEUES

    consumer_table: dict[str, dict[MessageQueue, Int64]] = msgspec.field(default_factory=dict)
    message_queue_table: dict[MessageQueue, Int64] = msgspec.field(default_factory=dict)


class CorrectionOffsets(JsonBody):
    """Reply to 308."""

    correction_offsets: dict[Int32, Int64] = msgspec.field(default_factory=dict)
