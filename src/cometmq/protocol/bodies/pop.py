"""Bodies of server-side assignment and POP consumption: 400, 401, 402, 200151."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Annotated, ClassVar, Final

import msgspec

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.ids import Int32, Int64
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol import fastjson
from cometmq.protocol.json_body import JsonBody

BIT_SET_CHARS_MAX: Final = 16_384
"""Maximum length of an encoded bit set: a filter may pick 32 messages out of a hundred thousand offsets."""

BITS_MAX: Final = 1024
"""Maximum number of messages of one pop; RocketMQ returns at most 32."""


class QueryAssignmentBody(JsonBody):
    """Request 400."""

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str | None = None
    message_model: str | None = None


class QueueAssignment(JsonBody):
    """``mode`` is PULL or POP; a queue id of -1 stands for all queues of the broker."""

    message_queue: MessageQueue | None = None
    mode: str = "PULL"
    attachments: dict[str, str] | None = None


class QueryAssignmentReply(JsonBody):
    message_queue_assignments: list[QueueAssignment] | None = None


class SetMessageRequestModeBody(JsonBody):
    """Request 401."""

    topic: str
    consumer_group: str
    mode: str = "PULL"
    pop_share_queue_num: Int32 = 0


class MessageRequestModes(JsonBody):
    """Reply to 402: by topic and group."""

    message_request_mode_map: dict[str, dict[str, SetMessageRequestModeBody]] = msgspec.field(
        default_factory=dict
    )


class BatchAck(JsonBody, kw_only=True):
    """Messages of one pop. ``retry`` is 0 for the topic itself, 1 and 2 for the two kinds of retry topic."""

    consumer_group: str = msgspec.field(name="c")
    topic: str = msgspec.field(name="t")
    retry: str = msgspec.field(name="r", default="0")
    start_offset: Int64 = msgspec.field(name="so")
    queue_id: Int32 = msgspec.field(name="q")
    revive_queue_id: Int32 = msgspec.field(name="rq")
    pop_time: Int64 = msgspec.field(name="pt")
    invisible_time: Int64 = msgspec.field(name="it")
    bit_set: Annotated[str, msgspec.Meta(max_length=BIT_SET_CHARS_MAX)] = msgspec.field(name="b")


class BatchAckBody(JsonBody):
    """Request 200151."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.Limits(1024 * 1024, 50_000)

    broker_name: str | None = None
    acks: list[BatchAck] = msgspec.field(default_factory=list)


def encode_bit_set(indexes: Iterable[int]) -> str:
    """Java's ``BitSet.toByteArray`` in Base64, lowest bit first: 1 and 9 are ``AgI=``."""
    bits = 0
    for index in indexes:
        bits |= 1 << index
    return base64.b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "little")).decode()


def decode_bit_set(text: str) -> list[int]:
    """The indexes, in order. Raises RemoteProtocolError if ``text`` is not Base64, or holds more than a pop may."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RemoteProtocolError(f"expected a bit set in Base64, got {text[:80]!r}") from None
    count = int.from_bytes(raw, "little").bit_count()
    if count > BITS_MAX:
        raise RemoteProtocolError(f"expected a bit set of at most {BITS_MAX} messages, got {count}")
    return [
        at * 8 + bit for at, byte in enumerate(raw) if byte for bit in range(8) if byte >> bit & 1
    ]
