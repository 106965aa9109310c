"""Pulling: 11, 361, and 29001, which is our extension."""

from __future__ import annotations

from cometmq.protocol.fields import Header, Int32, Int64, wire


class PullMessageHeader(Header):
    """``sys_flag`` holds the bits of ``model.flags.PullFlag``; they tell which of the other fields are used."""

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: Int64
    max_msg_nums: Int32
    sys_flag: Int32
    commit_offset: Int64 = 0
    suspend_timeout_millis: Int64 = 0
    subscription: str | None = None
    sub_version: Int64 = 0
    expression_type: str | None = None
    max_msg_bytes: Int32 | None = None
    request_source: Int32 | None = None
    proxy_froward_client_id: str | None = None
    lite_topic: str | None = None
    broker_name: str | None = wire("bname", default=None)


class PullMessageReply(Header):
    """With codes 0, 19, 20 and 21; a refusal has no header beyond ``PullForbiddenReply``."""

    suggest_which_broker_id: Int64
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64
    offset_delta: Int64 | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None


class PullForbiddenReply(Header):
    """With code 16 of RocketMQ 5. 1 broker, 2 group, 3 topic, 4 broadcast, 5 subscription."""

    forbidden_type: Int32 | None = None


class BulkPullHeader(Header):
    """A pull of megabytes for readers of whole ranges; it never waits, and commits nothing.

    ``end_offset`` is the exclusive end of the range. The broker lowers ``max_bytes`` and ``max_count`` to its own
    limits. The subscription, a tag expression or SQL92, is always included. With ``sizes_only`` the body holds only
    the sizes and no records, to decide how much to read.
    """

    consumer_group: str
    topic: str
    queue_id: Int32
    offset: Int64
    max_bytes: Int32
    max_count: Int32
    end_offset: Int64 | None = None
    subscription: str = "*"
    expression_type: str | None = None
    sizes_only: bool | None = None


class BulkPullReply(Header):
    """With codes 0, 19, 20 and 21, which mean the same as in the reply to a pull.

    With code 0, the body is ``count`` stored records in sequence, followed by the size of each as four bytes,
    big-endian: ``sizes`` are the last ``4 * count`` bytes. Records were selected by the hash of their tag; a reader
    that wants one tag has to compare the tag itself.
    """

    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64
    count: Int32
    suggest_which_broker_id: Int64 = 0
