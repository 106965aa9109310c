"""Looking messages up: 12 (by key) and 33 (by position)."""

from __future__ import annotations

from cometmq.protocol.fields import Header, Int32, Int64, wire


class QueryMessageHeader(Header):
    """Request 12. ``is_unique_key`` says that ``key`` is a UNIQ_KEY and not one of the user's keys."""

    topic: str
    key: str
    max_num: Int32
    begin_timestamp: Int64
    end_timestamp: Int64
    index_type: str | None = None
    last_key: str | None = None
    is_unique_key: bool = wire("_UNIQUE_KEY_QUERY", default=False)


class QueryMessageReply(Header):
    index_last_update_timestamp: Int64 = 0
    index_last_update_phyoffset: Int64 = 0


class ViewMessageHeader(Header):
    """Request 33. ``offset`` is a physical offset."""

    offset: Int64
    topic: str | None = None
