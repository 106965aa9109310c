"""Where a topic's queues are: what the name server answers and clients and brokers go by."""

from __future__ import annotations

import msgspec

from cometmq.model.flags import READ_WRITE


class QueueData(msgspec.Struct, kw_only=True, rename="camel"):
    """The queues a broker (by name, that is master and slaves together) has of a topic."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int = READ_WRITE
    topic_sys_flag: int = 0


class BrokerData(msgspec.Struct, kw_only=True, rename="camel"):
    """The addresses of a broker by id; 0 is the master."""

    cluster: str
    broker_name: str
    broker_addrs: dict[int, str]


class TopicRoute(msgspec.Struct, kw_only=True, rename="camel"):
    queue_datas: list[QueueData] = []
    broker_datas: list[BrokerData] = []
    filter_server_table: dict[str, list[str]] = {}
    order_topic_conf: str | None = None
