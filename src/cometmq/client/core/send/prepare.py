"""Turns messages into requests: checks, property text, compression, header. No I/O.

This runs for every message, so it builds strings and no dicts, and never copies a body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from cometmq.base.errors import UsageError
from cometmq.model.flags import SysFlag
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.batch import encode_batch
from cometmq.model.messages.compression import compress
from cometmq.model.messages.message import Message
from cometmq.model.messages.properties import (
    DELAY,
    KEYS,
    MAX_RECONSUME_TIMES,
    MESSAGE_TYPE,
    NAME_SEPARATOR,
    PAIR_SEPARATOR,
    RECONSUME_TIME,
    RESERVED,
    SHARDING_KEY,
    TAGS,
    TEXT_BYTES_MAX,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TRANSACTION_PREPARED,
    UNIQ_KEY,
    WAIT,
)
from cometmq.model.names import NOT_SENDABLE, RETRY_PREFIX, check_topic
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command

REPLY_TYPE: Final = "reply"
"""MSG_TYPE of the reply to a request."""

# A text with so few characters cannot exceed 32 KiB.
_SURELY_SHORT_CHARS: Final = TEXT_BYTES_MAX // 4

_SEND: Final = int(RequestCode.SEND_MESSAGE_V2)
_SEND_BATCH: Final = int(RequestCode.SEND_BATCH_MESSAGE)
_SEND_REPLY: Final = int(RequestCode.SEND_REPLY_MESSAGE_V2)


class Envelope:
    """What all requests of a producer have in common."""

    __slots__ = ("default_topic", "default_topic_queue_nums", "group", "unit_mode")

    def __init__(
        self, *, group: str, default_topic: str, default_topic_queue_nums: int, unit_mode: bool
    ) -> None:
        self.group = group
        self.default_topic = default_topic
        self.default_topic_queue_nums = str(default_topic_queue_nums)
        self.unit_mode = "true" if unit_mode else "false"


class SendRequest(msgspec.Struct, gc=False):
    """A send that only lacks its queue. It is used for all attempts, so that all have the same id."""

    envelope: Envelope
    code: int
    wire_topic: str
    body: bytes
    message_id: str
    properties: str
    born_ms: int
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: str = "0"
    max_reconsume_times: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it differs from others only in what ``send_frame`` fills in."""
        return (
            self.code == _SEND
            and not self.sys_flag
            and not self.flag
            and self.max_reconsume_times is None
            and self.reconsume_times == "0"
        )

    def to(self, queue: MessageQueue) -> Command:
        """The command for a queue, with the single-letter keys of ``SendMessageHeaderV2``."""
        envelope = self.envelope
        code = self.code
        ext = {
            "a": envelope.group,
            "b": self.wire_topic,
            "c": envelope.default_topic,
            "d": envelope.default_topic_queue_nums,
            "e": str(queue.queue_id),
            "f": str(self.sys_flag) if self.sys_flag else "0",
            "g": str(self.born_ms),
            "h": str(self.flag) if self.flag else "0",
            "i": self.properties,
            "j": self.reconsume_times,
            "k": envelope.unit_mode,
            "m": "true" if code == _SEND_BATCH else "false",
            "n": queue.broker_name,
        }
        if self.max_reconsume_times is not None:
            ext["l"] = self.max_reconsume_times
        return Command(code, ext, self.body)


def prepare(
    envelope: Envelope,
    wire_topic: str,
    message: Message,
    *,
    message_id: str,
    born_ms: int,
    body_bytes_max: int,
) -> SendRequest:
    """The request for one message, not yet compressed.

    Raises:
        UsageError: the message can never be sent as it is.
    """
    body = message.body
    if not body or len(body) > body_bytes_max:
        raise _bad_body(message, body_bytes_max)
    internal = message.internal_properties
    if not internal:
        properties = property_text(message, message_id)
        return SendRequest(
            envelope, _SEND, wire_topic, body, message_id, properties, born_ms, message.flag
        )
    # A message that is sent again under its old id.
    message_id = internal.get(UNIQ_KEY, message_id)
    is_retry = wire_topic.startswith(RETRY_PREFIX)
    # What a broker reads from the header of a retried message is not sent in its properties.
    properties = property_text(
        message, message_id, (RECONSUME_TIME, MAX_RECONSUME_TIMES) if is_retry else ()
    )
    return SendRequest(
        envelope,
        _SEND_REPLY if internal.get(MESSAGE_TYPE) == REPLY_TYPE else _SEND,
        wire_topic,
        body,
        message_id,
        properties,
        born_ms,
        flag=message.flag,
        sys_flag=int(SysFlag.TRANSACTION_PREPARED)
        if internal.get(TRANSACTION_PREPARED) == "true"
        else 0,
        reconsume_times=internal.get(RECONSUME_TIME, "0") if is_retry else "0",
        max_reconsume_times=internal.get(MAX_RECONSUME_TIMES) if is_retry else None,
    )


def pack_body(request: SendRequest, kind: int) -> None:
    """Compress the body if that makes it smaller: compressed or random data only grows."""
    packed, bits = compress(request.body, kind)
    if len(packed) < len(request.body):
        request.body = packed
        request.sys_flag |= bits


def prepare_batch(
    envelope: Envelope,
    wire_topic: str,
    messages: Sequence[Message],
    *,
    next_id: Callable[[int], str],
    born_ms: int,
    body_bytes_max: int,
) -> SendRequest:
    """One request for several messages, which are never compressed.

    Raises:
        UsageError: there are none or too many, they have different topics, or one of them cannot be part of a batch.
    """
    if not messages:
        raise UsageError("a batch needs at least one message")
    topic, is_waiting = messages[0].topic, messages[0].wait_store_ok
    if topic.startswith(RETRY_PREFIX):
        raise UsageError(f"messages to {topic!r} cannot be sent as a batch; send them one by one")
    ids: list[str] = []
    elements: list[tuple[int, bytes, bytes]] = []
    for message in messages:
        if not message.body:
            raise _bad_body(message, body_bytes_max)
        if message.topic != topic:
            raise UsageError(f"a batch goes to one topic, not to {topic!r} and {message.topic!r}")
        if message.wait_store_ok is not is_waiting:
            raise UsageError("the messages of a batch must agree in wait_store_ok")
        if message.is_delayed:
            raise UsageError("a message with a delay cannot be part of a batch; send it alone")
        if message.internal_properties:
            raise UsageError("a reply, retry or transaction cannot be part of a batch")
        message_id = next_id(born_ms)
        ids.append(message_id)
        elements.append((message.flag, message.body, property_text(message, message_id).encode()))
    body = encode_batch(elements)
    if len(body) > body_bytes_max:
        raise UsageError(
            f"batch of {len(body)} bytes, at most {body_bytes_max}; send fewer, or use send_all"
        )
    properties = f"{WAIT}{NAME_SEPARATOR}{'true' if is_waiting else 'false'}{PAIR_SEPARATOR}"
    return SendRequest(envelope, _SEND_BATCH, wire_topic, body, ",".join(ids), properties, born_ms)


def check_sendable(topic: str) -> None:
    """Raises UsageError if nothing may be sent to the topic."""
    check_topic(topic)
    if topic in NOT_SENDABLE:
        raise UsageError(f"topic {topic!r} belongs to the system; clients must not send to it")


def property_text(message: Message, message_id: str, left_out: Sequence[str] = ()) -> str:
    """All properties of a message as one text.

    Raises:
        UsageError: a reserved or empty name, an empty value, a separator inside one of them, an invalid delay, or too
            much text.
    """
    wait = "true" if message.wait_store_ok else "false"
    tags = message.tags
    if not (
        message.keys
        or message.properties
        or message.internal_properties
        or message.sharding_key
        or message.is_delayed
    ):
        # The usual case: one string, in which little can be wrong.
        if not tags:
            return f"{UNIQ_KEY}\x01{message_id}\x02{WAIT}\x01{wait}\x02"
        if "\x01" not in tags and "\x02" not in tags and len(tags) < _SURELY_SHORT_CHARS - 100:
            return f"{UNIQ_KEY}\x01{message_id}\x02{WAIT}\x01{wait}\x02{TAGS}\x01{tags}\x02"
    text = f"{UNIQ_KEY}\x01{message_id}\x02{WAIT}\x01{wait}\x02"
    pairs = 2
    if tags:
        text += f"{TAGS}\x01{tags}\x02"
        pairs += 1
    if message.keys:
        keys = message.keys if isinstance(message.keys, str) else " ".join(message.keys)
        if keys:
            text += f"{KEYS}\x01{keys}\x02"
            pairs += 1
    if message.sharding_key:
        text += f"{SHARDING_KEY}\x01{message.sharding_key}\x02"
        pairs += 1
    if message.is_delayed:
        text += _delay_text(message)
        pairs += 1
    for name, value in message.properties.items():
        if not name or not value or name in RESERVED or name.isspace() or value.isspace():
            raise _bad_property(name, value)
        text += f"{name}\x01{value}\x02"
        pairs += 1
    for name, value in message.internal_properties.items():
        if name != UNIQ_KEY and name not in left_out:
            text += f"{name}\x01{value}\x02"
            pairs += 1
    if text.count(NAME_SEPARATOR) != pairs or text.count(PAIR_SEPARATOR) != pairs:
        raise UsageError(
            "tags, keys, sharding key and properties must not hold \\x01 or \\x02, which separate them"
        )
    if len(text) > _SURELY_SHORT_CHARS and len(text.encode("utf-8", "replace")) > TEXT_BYTES_MAX:
        raise UsageError(
            f"properties of {len(text.encode('utf-8', 'replace'))} bytes, at most {TEXT_BYTES_MAX}"
        )
    return text


def _delay_text(message: Message) -> str:
    given = [
        (name, value)
        for name, value in (
            (DELAY, message.delay_level),
            (TIMER_DELAY_SEC, message.delay_seconds),
            (TIMER_DELAY_MS, message.delay_ms),
            (TIMER_DELIVER_MS, message.deliver_at_ms),
        )
        if value
    ]
    if len(given) > 1:
        raise UsageError(
            "give one of delay_level, delay_seconds, delay_ms and deliver_at_ms, not several"
        )
    name, value = given[0]
    if value < 0 or not isinstance(value, int):
        raise UsageError(f"a delay is a whole number from 0 on, not {value!r}")
    return f"{name}\x01{value}\x02"


def _bad_body(message: Message, body_bytes_max: int) -> UsageError:
    if not message.body:
        return UsageError(f"message to {message.topic!r} has an empty body; RocketMQ takes none")
    return UsageError(
        f"message to {message.topic!r} has a body of {len(message.body)} bytes, "
        f"at most {body_bytes_max} (maxMessageSize)"
    )


def _bad_property(name: str, value: str) -> UsageError:
    if name in RESERVED:
        return UsageError(f"property name {name!r} is reserved; choose another")
    return UsageError(f"property {name!r}={value!r}: name and value must not be blank")
