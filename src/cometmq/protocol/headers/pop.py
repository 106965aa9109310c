"""POP consumption of RocketMQ 5: 200050 to 200055. Batch acknowledgement (200151) has only a body."""

from __future__ import annotations

from cometmq.protocol.fields import Header, Int32, Int64, wire


class PopMessageHeader(Header):
    """Request 200050. ``queue_id`` -1 means any; ``init_mode`` is 0 for the queue's start, 1 for its end."""

    consumer_group: str
    topic: str
    queue_id: Int32
    max_msg_nums: Int32
    invisible_time: Int64
    poll_time: Int64
    born_time: Int64
    init_mode: Int32
    exp_type: str | None = None
    exp: str | None = None
    order: bool | None = None
    attempt_id: str | None = None
    broker_name: str | None = wire("bname", default=None)


class PopMessageReply(Header):
    """Also the reply to 200052. The three infos tell which record of the body is at which offset."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32
    rest_num: Int64
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class PeekMessageHeader(Header):
    """Request 200052."""

    consumer_group: str
    topic: str
    queue_id: Int32
    max_msg_nums: Int32


class AckMessageHeader(Header):
    """Request 200051. ``extra_info`` is the handle that was delivered with the message."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    lite_topic: str | None = None
    broker_name: str | None = wire("bname", default=None)


class ChangeInvisibleTimeHeader(Header):
    """Request 200053."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    invisible_time: Int64
    suspend: bool | None = None
    lite_topic: str | None = None
    broker_name: str | None = wire("bname", default=None)


class ChangeInvisibleTimeReply(Header):
    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32


class NotificationHeader(Header):
    """Request 200054: wait until there is something to pop."""

    consumer_group: str
    topic: str
    queue_id: Int32
    poll_time: Int64
    born_time: Int64
    order: bool | None = None
    attempt_id: str | None = None
    exp_type: str | None = None
    exp: str | None = None
    broker_name: str | None = wire("bname", default=None)


class NotificationReply(Header):
    has_msg: bool
    polling_full: bool | None = None


class PollingInfoHeader(Header):
    """Request 200055."""

    consumer_group: str
    topic: str
    queue_id: Int32
    broker_name: str | None = wire("bname", default=None)


class PollingInfoReply(Header):
    polling_num: Int32
