"""Which kind of id a message id is, and which of the messages found are the right ones. No I/O.

Both kinds are 32 hex digits (56 with an IPv6 address). An offset id is address, port and physical offset: a port is at
most 65535, so the two bytes before it are zero. In the unique id that a producer creates, those two bytes are its
process id. If the process id is a multiple of 65536, the two look alike; then both kinds are tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cometmq.base.errors import UsageError
from cometmq.model.messages.message_id import OffsetId, parse_offset_id
from cometmq.model.messages.received_message import ReceivedMessage

TIME_MS_MAX = 2**63 - 1

INDEX_STEP_MS = 1000
"""RocketMQ's index may record a message as this much older than it is; a query has to start that much earlier."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """How to look up an id: at a broker's offset, by unique id in a topic, or first one, then the other."""

    place: OffsetId | None
    topic: str | None


def lookup(message_id: str, topic: str | None) -> Lookup:
    """Raises UsageError if the text is not an id, or needs a topic."""
    try:
        place = parse_offset_id(message_id)
    except UsageError:
        raise UsageError(
            f"expected a message id of 32 hex digits (56 with an IPv6 address), as in "
            f"SendResult.offset_id or ReceivedMessage.message_id, got {message_id!r}"
        ) from None
    port = int.from_bytes(place.host[-4:], "big")
    if 0 < port < 65536:
        return Lookup(place, topic)
    if topic is None:
        raise UsageError(
            f"{message_id} is a unique id, which does not say where the message lies; "
            "give the topic, too, or the offset id (SendResult.offset_id)"
        )
    return Lookup(None, topic)


def with_key(
    messages: Iterable[ReceivedMessage],
    topic: str,
    key: str,
    begin_ms: int = 0,
    end_ms: int = TIME_MS_MAX,
) -> list[ReceivedMessage]:
    """Those with the key and in the time range, newest first. A broker's index only has hashes and seconds."""
    found = [
        message
        for message in messages
        if message.topic == topic
        and begin_ms <= message.store_timestamp <= end_ms
        and (key in message.keys or key == message.message_id)
    ]
    return sorted(found, key=lambda message: message.store_timestamp, reverse=True)


def with_unique_id(
    messages: Iterable[ReceivedMessage], topic: str, unique_id: str
) -> ReceivedMessage | None:
    """The message with the id; of several (a retry has the same id), the one stored first."""
    found = [
        message
        for message in messages
        if message.topic == topic and message.message_id.upper() == unique_id.upper()
    ]
    return min(found, key=lambda message: message.store_timestamp, default=None)
