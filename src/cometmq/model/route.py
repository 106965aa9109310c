"""Where a topic's queues are: what the name server answers and clients and brokers go by."""

from __future__ import annotations

from typing import Any

import msgspec

from cometmq.model.flags import READ_WRITE
from cometmq.model.ids import Int32, Int64


class QueueData(msgspec.Struct, kw_only=True, rename="camel"):
    """The queues a broker (by name, that is master and slaves together) has of a topic."""

    broker_name: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32 = READ_WRITE
    topic_sys_flag: Int32 = 0


class BrokerData(msgspec.Struct, kw_only=True, rename="camel"):
    """The addresses of a broker by id; 0 is the master. The last two came with RocketMQ 5."""

    cluster: str
    broker_name: str
    broker_addrs: dict[Int64, str]
    enable_acting_master: bool | None = None
    zone_name: str | None = None


class TopicRoute(msgspec.Struct, kw_only=True, rename="camel"):
    queue_datas: list[QueueData] = []
    broker_datas: list[BrokerData] = []
    filter_server_table: dict[str, list[str]] = {}
    order_topic_conf: str | None = None
    topic_queue_mapping_by_broker: dict[str, Any] | None = None
