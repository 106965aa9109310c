"""Sending: 10, 310, 320, 324, 325, send-back (36), recall (370), and the push of a reply to its requester (326)."""

from __future__ import annotations

from cometmq.protocol.fields import Header, Int32, Int64, wire


class SendMessageHeader(Header, kw_only=True):
    """Requests 10 and 324. A missing topic is left to the topic check, which produces the refusal.

    ``sink`` is our extension: the writer that a lane of a sink is open for; see ``headers.sink``.
    """

    producer_group: str = ""
    topic: str = ""
    default_topic: str = ""
    default_topic_queue_nums: Int32 = 4
    queue_id: Int32
    sys_flag: Int32 = 0
    born_timestamp: Int64
    flag: Int32 = 0
    properties: str = ""
    reconsume_times: Int32 = 0
    unit_mode: bool = False
    max_reconsume_times: Int32 | None = None
    batch: bool = False
    broker_name: str | None = wire("bname", default=None)
    sink: str | None = None


class SendMessageHeaderV2(Header, kw_only=True):
    """Requests 310, 320 and 325: the same with its keys shortened to one letter."""

    producer_group: str = wire("a", default="")
    topic: str = wire("b", default="")
    default_topic: str = wire("c", default="")
    default_topic_queue_nums: Int32 = wire("d", default=4)
    queue_id: Int32 = wire("e")
    sys_flag: Int32 = wire("f", default=0)
    born_timestamp: Int64 = wire("g")
    flag: Int32 = wire("h", default=0)
    properties: str = wire("i", default="")
    reconsume_times: Int32 = wire("j", default=0)
    unit_mode: bool = wire("k", default=False)
    max_reconsume_times: Int32 | None = wire("l", default=None)
    batch: bool = wire("m", default=False)
    broker_name: str | None = wire("n", default=None)
    sink: str | None = None


class SendMessageReply(Header):
    """With codes 0, 10, 11 and 12, which all mean stored. Any other reply carries only region and trace switch."""

    msg_id: str
    queue_id: Int32
    queue_offset: Int64
    transaction_id: str | None = None
    recall_handle: str | None = None
    batch_uniq_id: str | None = None
    msg_region: str | None = wire("MSG_REGION", default=None)
    trace_on: bool | None = wire("TRACE_ON", default=None)


class ConsumerSendMsgBackHeader(Header):
    """Request 36. ``offset`` is the physical offset of the message to be delivered again."""

    offset: Int64
    group: str
    delay_level: Int32
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int32 | None = None
    broker_name: str | None = wire("bname", default=None)


class RecallMessageHeader(Header, kw_only=True):
    """Request 370: recall a timer message that is not yet due."""

    producer_group: str | None = None
    topic: str
    recall_handle: str
    broker_name: str | None = wire("bname", default=None)


class RecallMessageReply(Header):
    msg_id: str
    msg_region: str | None = wire("MSG_REGION", default=None)


class PushReplyMessageHeader(Header, kw_only=True):
    """Request 326, broker to client: the reply message a requester waits for."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str = ""
    reconsume_times: Int32 = 0
    unit_mode: bool = False
    born_host: str
    store_host: str
    store_timestamp: Int64
