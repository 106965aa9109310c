"""Offsets of queues and of consumers: 14, 15, 29 to 32."""

from __future__ import annotations

from cometmq.protocol.fields import Header, Int32, Int64, wire


class QueryConsumerOffsetHeader(Header):
    """Request 14."""

    consumer_group: str
    topic: str
    queue_id: Int32
    set_zero_if_not_found: bool | None = None
    broker_name: str | None = wire("bname", default=None)


class UpdateConsumerOffsetHeader(Header):
    """Request 15, mostly one-way."""

    consumer_group: str
    topic: str
    queue_id: Int32
    commit_offset: Int64
    broker_name: str | None = wire("bname", default=None)


class SearchOffsetHeader(Header):
    """Request 29. ``boundary_type`` is ``LOWER`` (the default) or ``UPPER``, in any case."""

    topic: str
    queue_id: Int32
    timestamp: Int64
    boundary_type: str | None = None
    broker_name: str | None = wire("bname", default=None)


class GetMaxOffsetHeader(Header):
    """Request 30."""

    topic: str
    queue_id: Int32
    committed: bool | None = None
    broker_name: str | None = wire("bname", default=None)


class GetMinOffsetHeader(Header):
    """Request 31."""

    topic: str
    queue_id: Int32
    broker_name: str | None = wire("bname", default=None)


class GetEarliestStoreTimeHeader(Header):
    """Request 32."""

    topic: str
    queue_id: Int32
    broker_name: str | None = wire("bname", default=None)


class OffsetReply(Header):
    """Replies to 14, 29, 30 and 31."""

    offset: Int64


class TimestampReply(Header):
    """Reply to 32."""

    timestamp: Int64
