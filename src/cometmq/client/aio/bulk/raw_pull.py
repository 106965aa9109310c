"""Requests for stored records as they are, and what their replies hold. No I/O.

For readers that decode records themselves, thousands at a time; ``aio.pull.pull_call`` makes messages of them.

bulk pull        megabytes of one queue in one reply; ours alone: RocketMQ's broker does not know the request
ordinary pull    what every consumer sends
"""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass
from typing import Final

from cometmq.base.errors import RemoteProtocolError
from cometmq.client.aio.pull.pull_call import PullStatus, status_of
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Body, Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.pull import (
    BulkPullHeader,
    BulkPullReply,
    PullMessageHeader,
    PullMessageReply,
)

BULK_BYTES: Final = 4 << 20
"""What to ask a bulk pull for: half of what the broker gives at most, and enough that a round trip does not count."""

_SIZE_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class RawPulled:
    """What came for the offsets up to ``next_offset``.

    ``records`` are stored records, one behind the other; they are in lent memory if some was lent. ``sizes`` has the
    size of each; it is None where nobody tells. Records were kept by the hash of their tag: whoever wants one tag
    exactly looks at the tag itself.
    """

    status: PullStatus
    next_offset: int
    min_offset: int
    max_offset: int
    records: Body = b""
    sizes: array[int] | None = None


def bulk_pull_request(header: BulkPullHeader) -> Command:
    return Command(RequestCode.BULK_PULL, encode_fields(header))


def read_bulk_pull(reply: Command, address: str, *, sizes_only: bool = False) -> RawPulled:
    """
    Args:
        sizes_only: that was asked for, so that the body holds sizes and no records.

    Raises:
        RequestCodeNotSupported: the broker is not ours; use ordinary pulls.
        BrokerReplyError: it refused: topic, group, permission, expression, or it is busy.
        RemoteProtocolError: the body is not what the header says.
    """
    status = status_of(reply, address)
    header = decode_fields(BulkPullReply, reply.ext)
    body = memoryview(reply.body)
    records_end = len(body) - _SIZE_BYTES * header.count
    if header.count < 0 or records_end < 0:
        raise RemoteProtocolError(
            f"bulk pull reply of {len(body)} bytes cannot hold {header.count} records"
        )
    sizes = array("i", body[records_end:].tobytes())
    if sys.byteorder == "little":
        sizes.byteswap()
    if not sizes_only and sum(sizes) != records_end:
        raise RemoteProtocolError(
            f"bulk pull reply holds {records_end} bytes of records, its sizes say {sum(sizes)}"
        )
    return RawPulled(
        status=status,
        next_offset=header.next_begin_offset,
        min_offset=header.min_offset,
        max_offset=header.max_offset,
        records=body[:records_end],
        sizes=sizes,
    )


def pull_request(header: PullMessageHeader) -> Command:
    return Command(RequestCode.PULL_MESSAGE, encode_fields(header))


def read_pull(reply: Command, address: str) -> RawPulled:
    """Raises BrokerReplyError when the broker refused."""
    status = status_of(reply, address)
    header = decode_fields(PullMessageReply, reply.ext)
    return RawPulled(
        status=status,
        next_offset=header.next_begin_offset,
        min_offset=header.min_offset,
        max_offset=header.max_offset,
        records=reply.body,
    )
