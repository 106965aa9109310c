"""Administration of a broker's topics, groups, offsets and statistics."""

from __future__ import annotations

from cometmq.protocol.fields import Header, Int32, Int64, wire


class CreateTopicHeader(Header, kw_only=True):
    """Requests 17 and 513 (whose body is the mapping of a static topic). ``attributes`` reads ``+k=v,-k``."""

    topic: str
    default_topic: str = ""
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: Int32 | None = None
    order: bool = False
    attributes: str | None = None
    force: bool | None = None


class DeleteTopicHeader(Header):
    """Request 215."""

    topic: str


class GetAllTopicConfigHeader(Header):
    """Request 21. RocketMQ 5 asks page by page; without these fields everything is wanted."""

    topic_seq: Int32 | None = None
    data_version: str | None = None
    max_topic_num: Int32 | None = None


class GetAllTopicConfigReply(Header):
    total_topic_num: Int32 | None = None


class GetTopicConfigHeader(Header):
    """Request 351."""

    topic: str
    is_logical: bool | None = wire("lo", default=None)


class GetTopicStatsHeader(Header):
    """Request 202."""

    topic: str


class QueryTopicConsumeByWhoHeader(Header):
    """Request 300."""

    topic: str


class QueryConsumeQueueHeader(Header):
    """Request 321. ``index`` is the queue offset to start at; a negative one counts from the end."""

    topic: str
    queue_id: Int32
    index: Int64
    count: Int32
    consumer_group: str | None = None


class CheckConsumeQueueProgressHeader(Header):
    """Request 354."""

    topic: str | None = None
    check_store_time: Int64 | None = None


class GetAllGroupConfigHeader(Header):
    """Request 201. RocketMQ 5 asks page by page; without these fields everything is wanted."""

    group_seq: Int32 | None = None
    data_version: str | None = None
    max_group_num: Int32 | None = None


class GetAllGroupConfigReply(Header):
    total_group_num: Int32 | None = None


class GetGroupConfigHeader(Header):
    """Request 352."""

    group: str


class DeleteGroupHeader(Header):
    """Request 207. The switch changed its name between versions; ``wants_offsets_removed`` reads both."""

    group_name: str
    clean_offset: bool | None = None
    remove_offset: bool | None = None

    @property
    def wants_offsets_removed(self) -> bool:
        return bool(self.clean_offset or self.remove_offset)


class GetConsumerConnectionHeader(Header):
    """Request 203."""

    consumer_group: str


class GetProducerConnectionHeader(Header):
    """Request 204."""

    producer_group: str


class GetConsumeStatsHeader(Header):
    """Request 208. ``topic_list`` (separated by ``;``) wins over ``topic``; neither means all topics."""

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


class ResetOffsetHeader(Header):
    """Request 222, and 220 to the clients. ``timestamp`` -1 means the end of the queue."""

    topic: str
    group: str
    timestamp: Int64
    is_force: bool = False
    queue_id: Int32 | None = None
    offset: Int64 | None = None


class GetConsumerStatusHeader(Header):
    """Request 223, and 221 to the clients."""

    topic: str
    group: str
    client_addr: str | None = None


class QueryConsumeTimeSpanHeader(Header):
    """Request 303."""

    topic: str
    group: str


class QueryCorrectionOffsetHeader(Header):
    """Request 308. ``filter_groups`` is separated by commas."""

    topic: str
    compare_group: str
    filter_groups: str | None = None


class CloneGroupOffsetHeader(Header):
    """Request 314."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False


class GetBrokerConsumeStatsHeader(Header):
    """Request 317."""

    is_order: bool = False


class QueryTopicsByConsumerHeader(Header):
    """Request 343."""

    group: str


class QuerySubscriptionByConsumerHeader(Header):
    """Request 345."""

    group: str
    topic: str | None = None


class GroupForbiddenHeader(Header):
    """Request 353. Without ``readable`` the state is only queried."""

    group: str
    topic: str
    readable: bool | None = None


class GetConsumerRunningInfoHeader(Header):
    """Request 307, from an operator to the broker and on to the client."""

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


class ConsumeMessageDirectlyHeader(Header):
    """Request 309, from an operator to the broker and on to the client, which then has the record as body."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None


class GetBrokerConfigReply(Header):
    """Reply to 26: the data version of the configuration as JSON text."""

    version: str | None = None


class ViewBrokerStatsHeader(Header):
    """Request 315."""

    stats_name: str
    stats_key: str
