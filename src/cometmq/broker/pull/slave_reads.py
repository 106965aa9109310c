"""What a slave answers to a reader where a master would answer otherwise. No I/O.

A slave may lack what its master has: the newest messages, which are on their way, and the oldest, which it never
copied. Where a master corrects an offset that is outside the queue, a slave would make the reader skip or repeat
messages. So it leaves the offset as it is, and tells the reader to come again; RocketMQ does the same.
"""

from __future__ import annotations

from typing import Final

from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.ids import MASTER_ID
from cometmq.protocol.codes import ResponseCode
from cometmq.store.read.read_results import GetResult, GetStatus

SHORT_HOLD_SECONDS: Final = 1.0
"""How long a slave holds a reader that the master may serve better, or that no new message will help. Not at all would
make clients ask again and again without a pause."""

_COMING: Final = frozenset(
    {
        GetStatus.OFFSET_OVERFLOW_BADLY,
        GetStatus.NO_MATCHED_LOGIC_QUEUE,
        GetStatus.NO_MESSAGE_IN_QUEUE,
    }
)
"""The master has, or had, what the reader asks for; the slave may get it any moment."""

_ABSENT: Final = frozenset({GetStatus.OFFSET_TOO_SMALL, GetStatus.OFFSET_FOUND_NULL})
"""The slave will never have it."""


def is_not_here(status: GetStatus) -> bool:
    """Whether a reader asked for what the slave does not have, or not yet."""
    return status in _COMING or status in _ABSENT


def keep_offset(found: GetResult, offset: int) -> None:
    """Have the reader stay where it is, if it asked for what is not here."""
    if is_not_here(found.status):
        found.next_offset = offset


def slave_code(code: ResponseCode) -> ResponseCode:
    """What a slave answers instead of a code."""
    if code == ResponseCode.PULL_OFFSET_MOVED:
        return ResponseCode.PULL_RETRY_IMMEDIATELY
    return code


def hold_seconds(status: GetStatus, wanted: float, *, is_master_there: bool) -> float:
    """How long a slave holds a pull that asks to be held so long."""
    if is_master_there or status in _ABSENT:
        return min(wanted, SHORT_HOLD_SECONDS)
    return wanted


def suggested_id(
    group: SubscriptionGroupConfig, *, lags: bool, is_slave: bool, is_master_there: bool
) -> int:
    """The broker that a reader is to ask next, if slaves may serve readers.

    Args:
        lags: it reads what has probably left the memory of this broker.
        is_slave: whether this broker is one.
    """
    if lags:
        return group.which_broker_when_consume_slowly
    return MASTER_ID if is_slave and is_master_there else group.broker_id
