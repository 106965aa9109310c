"""Bulk pulls from a task: megabytes of one queue in one reply, ready for the decoder.

    with BlockingConnection(address) as connection:
        reply = bulk_pull(connection, BulkPullHeader(...))
        reply.records, reply.sizes, reply.next_offset

The reply's body is the stored records, one behind the other and nothing before them, and behind them the size of each
as four bytes, big end first; ``sizes`` is made of those. Records were kept by the hash of their tag: whoever wants one
tag exactly looks at the tag itself. A broker of RocketMQ does not know the request: ``RequestCodeNotSupported``.

``ask`` and ``take`` are the halves of ``bulk_pull``: a reader may ask for the next range before it decodes this one.
Records lie in memory of the connection: done with them before the next is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from cometmq.base.errors import RemoteProtocolError
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.pull import BulkPullHeader, BulkPullReply
from cometmq.protocol.reply_errors import error_for
from cometmq.spark.connection import BlockingConnection

REPLY_BYTES: Final = 4 << 20
"""What to ask for: half of what the broker gives at most, and enough that a round trip does not count."""

_SIZE_BYTES: Final = 4
_PULLED: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    }
)


@dataclass(frozen=True, slots=True)
class BulkPulled:
    """What a bulk pull brought.

    ``code`` is SUCCESS with records; PULL_RETRY_IMMEDIATELY when nothing matched up to ``next_offset``; PULL_NOT_FOUND
    at the end of the queue; PULL_OFFSET_MOVED when the queue does not hold the offset asked for (any more).
    """

    code: ResponseCode
    status: str
    next_offset: int
    min_offset: int
    max_offset: int
    count: int
    suggested_broker_id: int
    records: memoryview
    sizes: npt.NDArray[np.int32]


def bulk_pull(connection: BlockingConnection, header: BulkPullHeader) -> BulkPulled:
    """Ask and wait.

    Raises:
        RequestCodeNotSupported: the broker is not ours; use ordinary pulls.
        BrokerReplyError: it refused: topic, group, permission, expression, or it is busy.
        RemotingError: the wire failed.
    """
    return take(connection, ask(connection, header))


def ask(connection: BlockingConnection, header: BulkPullHeader) -> int:
    """Send the request. The number to ``take`` its reply by."""
    return connection.send(Command(code=RequestCode.BULK_PULL, ext=encode_fields(header)))


def take(connection: BlockingConnection, number: int) -> BulkPulled:
    """Wait for the reply. Raises as ``bulk_pull`` does."""
    reply = connection.receive(number, is_body_lent=True)
    if reply.code not in _PULLED:
        raise error_for(reply, connection.address)
    header = decode_fields(BulkPullReply, reply.ext)
    body = memoryview(reply.body)
    records_end = len(body) - _SIZE_BYTES * header.count
    if records_end < 0:
        raise RemoteProtocolError(
            f"bulk pull reply of {len(body)} bytes cannot hold {header.count} records"
        )
    sizes = np.frombuffer(body, ">i4", header.count, records_end).astype(np.int32)
    if int(sizes.sum(dtype=np.int64)) != records_end:
        raise RemoteProtocolError(
            f"bulk pull reply holds {records_end} bytes of records, its sizes say {sizes.sum()}"
        )
    return BulkPulled(
        code=ResponseCode(reply.code),
        status=reply.remark or "",
        next_offset=header.next_begin_offset,
        min_offset=header.min_offset,
        max_offset=header.max_offset,
        count=header.count,
        suggested_broker_id=header.suggest_which_broker_id,
        records=body[:records_end],
        sizes=sizes,
    )
