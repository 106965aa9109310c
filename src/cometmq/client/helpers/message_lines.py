"""Messages as lines of text, the way ``cometmq produce`` reads and ``cometmq consume`` writes them. No I/O."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from dataclasses import dataclass, field

import msgspec

from cometmq.base.errors import UsageError
from cometmq.model.messages.message import Message
from cometmq.model.messages.properties import RESERVED, SHARDING_KEY
from cometmq.model.messages.received_message import ReceivedMessage


class JsonLine(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One message as a JSON object. ``consume`` writes it and ``produce`` reads it, ignoring the last block.

    ``body_error`` is not ignored: such a body is not what the producer intended, and sending it would hide that.
    """

    body: str | None = None
    body_base64: str | None = None
    tags: str | None = None
    keys: list[str] = []
    properties: dict[str, str] = {}
    delay_level: int | None = None
    sharding_key: str | None = None
    body_error: str | None = None

    topic: str | None = None
    broker: str | None = None
    queue: int | None = None
    offset: int | None = None
    message_id: str | None = None
    stored_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the options set for every message; a JSON line overrides it field by field."""

    topic: str
    tags: str | None = None
    keys: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    delay_level: int = 0
    sharding_key: str | None = None


def message_of(line: bytes, given: Given, *, is_json: bool, is_base64: bool) -> Message:
    """Raises UsageError for a line that is not a message; its text says what was expected."""
    if not is_json:
        return _message(given, _unpack(line) if is_base64 else line)
    try:
        fields = msgspec.json.decode(line, type=JsonLine)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f'expected a JSON object like {{"body": "text", "tags": "paid"}}: {error}'
        ) from None
    if fields.body_error is not None:
        raise UsageError(
            f"expected a line without body_error: its body is still packed ({fields.body_error}); leave the line out"
        )
    if (fields.body is None) == (fields.body_base64 is None):
        raise UsageError("expected one of the fields body and body_base64")
    if fields.body_base64 is not None:
        body = _unpack(fields.body_base64.encode())
    else:
        assert fields.body is not None
        body = fields.body.encode()
        if is_base64:
            body = _unpack(body)
    return _message(
        Given(
            topic=given.topic,
            tags=given.tags if fields.tags is None else fields.tags,
            keys=tuple(fields.keys) or given.keys,
            properties={**given.properties, **fields.properties},
            delay_level=given.delay_level if fields.delay_level is None else fields.delay_level,
            sharding_key=fields.sharding_key or given.sharding_key,
        ),
        body,
    )


def line_of(message: ReceivedMessage, *, is_json: bool, is_base64: bool) -> bytes:
    """The line without its terminator. In a JSON line, a body that is not UTF-8 becomes ``body_base64``."""
    body = b64encode(message.body) if is_base64 else message.body
    if not is_json:
        return body
    try:
        text, packed = body.decode(), None
    except UnicodeDecodeError:
        text, packed = None, b64encode(body).decode()
    return msgspec.json.encode(
        JsonLine(
            body=text,
            body_base64=packed,
            tags=message.tags,
            keys=message.keys,
            properties={
                name: value
                for name, value in message.properties.items()
                if name not in RESERVED and name != SHARDING_KEY
            },
            sharding_key=message.properties.get(SHARDING_KEY),
            body_error=message.body_error,
            topic=message.topic,
            broker=message.broker_name,
            queue=message.queue_id,
            offset=message.queue_offset,
            message_id=message.message_id,
            stored_ms=message.store_timestamp,
        )
    )


def _message(given: Given, body: bytes) -> Message:
    return Message(
        topic=given.topic,
        body=body,
        tags=given.tags,
        keys=given.keys,
        properties=given.properties,
        delay_level=given.delay_level,
        sharding_key=given.sharding_key,
    )


def _unpack(text: bytes) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error as error:
        raise UsageError(f"expected base64, got {text[:40]!r}: {error}") from None
