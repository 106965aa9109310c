"""Bodies about a broker as a process: replication, timers, cold data, light topics, static topics."""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

import msgspec

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.ids import Int32, Int64
from cometmq.model.topic import DataVersion
from cometmq.protocol.json_body import JsonBody


class HaConnectionInfo(JsonBody):
    """A replica as its master sees it."""

    addr: str
    slave_ack_offset: Int64 = 0
    diff: Int64 = 0
    in_sync: bool = False
    transferred_byte_in_second: Int64 = 0
    transfer_from_where: Int64 = 0


class HaClientInfo(JsonBody):
    """A master as its replica sees it."""

    master_addr: str | None = None
    transferred_byte_in_second: Int64 = 0
    max_offset: Int64 = 0
    last_read_timestamp: Int64 = 0
    last_write_timestamp: Int64 = 0
    master_flush_offset: Int64 = 0
    is_activated: bool | None = msgspec.field(name="activated", default=None)


class HaStatus(JsonBody):
    """Reply to 907."""

    master: bool = True
    master_commit_log_max_offset: Int64 = 0
    in_sync_slave_nums: Int32 = 0
    ha_connection_info: list[HaConnectionInfo] = msgspec.field(default_factory=list)
    ha_client_runtime_info: HaClientInfo = msgspec.field(default_factory=HaClientInfo)


class TimerMetric(JsonBody):
    count: Int64 = 0
    time_stamp: Int64 = 0


class TimerMetrics(JsonBody):
    """Reply to 61: waiting timer messages by topic."""

    timing_count: dict[str, TimerMetric] = msgspec.field(default_factory=dict)
    data_version: DataVersion | None = None


class TimerCheckpoint(NamedTuple):
    """Reply to 60, content of the file ``timercheck``: seven int64, the data version last."""

    last_read_time_ms: int
    last_timer_log_flush_position: int
    last_timer_queue_offset: int
    master_timer_queue_offset: int
    state_version: int
    timestamp: int
    counter: int


class ColdDataInfo(JsonBody):
    """Reply to 2003."""

    runtime_table: dict[str, Any] = msgspec.field(default_factory=dict)
    config_table: dict[str, Any] = msgspec.field(default_factory=dict)
    cg_cold_read_threshold: Int64 = 0
    global_cold_read_threshold: Int64 = 0
    global_acc: Int64 = 0


class CheckProgressResult(JsonBody):
    """Reply to 354."""

    check_status: Int32 = 0
    check_result: str | None = None


class BrokerLiteInfo(JsonBody):
    """Reply to 200074."""

    store_type: str | None = None
    max_lmq_num: Int32 = 0
    current_lmq_num: Int32 = 0
    lite_subscription_count: Int32 = 0
    order_info_count: Int32 = 0
    cq_table_size: Int32 = 0
    offset_table_size: Int32 = 0
    event_map_size: Int32 = 0
    topic_meta: dict[str, Any] = msgspec.field(default_factory=dict)
    group_meta: dict[str, Any] = msgspec.field(default_factory=dict)


class LogicQueueMapping(JsonBody):
    """One section of a static topic's queue: where it is physically stored."""

    bname: str
    gen: Int32 = 0
    queue_id: Int32 = 0
    logic_offset: Int64 = 0
    start_offset: Int64 = 0
    end_offset: Int64 = -1
    time_of_start: Int64 = -1
    time_of_end: Int64 = -1


class TopicQueueMapping(JsonBody):
    """Request 513."""

    topic: str
    bname: str | None = None
    scope: str | None = None
    total_queues: Int32 = 0
    epoch: Int64 = 0
    dirty: bool = False
    curr_id_map: dict[Int32, Int32] = msgspec.field(default_factory=dict)
    hosted_queues: dict[Int32, list[LogicQueueMapping]] = msgspec.field(default_factory=dict)


_CHECKPOINT: Final = struct.Struct(">7q")


def encode_timer_checkpoint(checkpoint: TimerCheckpoint) -> bytes:
    return _CHECKPOINT.pack(*checkpoint)


def decode_timer_checkpoint(body: bytes | memoryview) -> TimerCheckpoint:
    """Raises RemoteProtocolError unless there are exactly 56 bytes."""
    if len(body) != _CHECKPOINT.size:
        raise RemoteProtocolError(f"timer checkpoint of {len(body)} bytes, expected 56")
    return TimerCheckpoint(*_CHECKPOINT.unpack(body))
