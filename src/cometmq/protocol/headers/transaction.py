"""Transactions: 37, 39, 323."""

from __future__ import annotations

from cometmq.protocol.fields import Header, Int32, Int64, wire


class EndTransactionHeader(Header):
    """Request 37, one-way. ``commit_or_rollback`` is 8, 12, or 0 for unknown; ``msg_id`` is the UNIQ_KEY."""

    producer_group: str
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    commit_or_rollback: Int32
    from_transaction_check: bool = False
    msg_id: str | None = None
    transaction_id: str | None = None
    topic: str | None = None
    broker_name: str | None = wire("bname", default=None)


class CheckTransactionStateHeader(Header):
    """Request 39, broker to client, one-way: what is the outcome of this half message?"""

    tran_state_table_offset: Int64
    commit_log_offset: Int64
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    topic: str | None = None
    broker_name: str | None = wire("bname", default=None)


class ResumeCheckHalfMessageHeader(Header):
    """Request 323: start checking a half message again."""

    msg_id: str | None = None
    topic: str | None = None
