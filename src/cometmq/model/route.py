"""Where a topic's queues are: the name server's reply, used by clients and brokers."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cometmq.model.flags import READ_WRITE
from cometmq.model.ids import Int32, Int64

QUEUES_MAX: Final = 262_144
"""Maximum for one topic on all brokers: clients create an object for each."""

_DIGITS_MAX: Final = 12


class QueueData(msgspec.Struct, kw_only=True, rename="camel"):
    """A topic's queues on a broker (by name, that is, master and slaves together)."""

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

    def order_counts(self) -> list[tuple[str, int]]:
        """Brokers and their queues as fixed by the order configuration: ``brokerA:4;brokerB:2``."""
        if not self.order_topic_conf:
            return []
        parts = (part.partition(":") for part in self.order_topic_conf.split(";"))
        return [(name, int(count[:_DIGITS_MAX])) for name, _, count in parts if count.isdecimal()]

    def fault(self) -> str | None:
        """Why this cannot be the route of a topic, or None."""
        readable = writable = 0
        for data in self.queue_datas:
            readers, writers = data.read_queue_nums, data.write_queue_nums
            if readers < 0 or writers < 0:
                return f"{min(readers, writers)} queues on broker {data.broker_name!r}"
            readable += readers
            writable += writers
        if readable > QUEUES_MAX or writable > QUEUES_MAX:
            return f"{max(readable, writable)} queues"
        if self.order_topic_conf:
            ordered = sum(count for _, count in self.order_counts())
            if ordered > QUEUES_MAX:
                return f"{ordered} queues in order"
        return None
