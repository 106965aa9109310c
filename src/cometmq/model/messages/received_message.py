"""A message as a consumer gets it, created directly from the bytes of a pull.

A consumer may handle some hundred thousand of these a second and only look at the body, so whatever is expensive to
build (properties, ids, host strings) is built on first access. ``native/messages.pyx`` is the compiled twin of the
attributes and of ``decode_messages``.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.address import host_text
from cometmq.model.messages.checksum import crc32
from cometmq.model.messages.compression import decompress
from cometmq.model.messages.message_id import offset_id_text
from cometmq.model.messages.properties import (
    KEYS,
    TAGS,
    UNIQ_KEY,
    parse_properties,
    split_keys,
)
from cometmq.model.messages.record import Parts, Record, read_record
from cometmq.native.choice import twin

_COMPRESSED: Final = 1
_NO_HOST: Final = bytes(8)


class MessageFields:
    """What a message has of its own; the rest is made of it."""

    __slots__ = (
        "_added",
        "_born_host",
        "_properties",
        "_properties_text",
        "_store_host",
        "body",
        "body_crc",
        "body_error",
        "born_timestamp",
        "broker_name",
        "flag",
        "physical_offset",
        "prepared_transaction_offset",
        "queue_id",
        "queue_offset",
        "reconsume_times",
        "size_bytes",
        "store_timestamp",
        "sys_flag",
        "topic",
    )


_FIELDS: Final = MessageFields.__slots__

_twin = twin("messages")
if not TYPE_CHECKING and _twin is not None:
    MessageFields = _twin.MessageFields


class ReceivedMessage(MessageFields):
    """What a consumer gets. ``body`` is decompressed, whatever compression was used on the wire.

    If it cannot be decompressed, because it is damaged or larger than 64 MiB, ``body_error`` says why, and ``body``
    holds the stored bytes. Listeners of push consumers are not called with such a message: it counts as failed.

    ``properties`` is a dict that belongs to the message; tags, keys and message id are read from it, so changes to it
    are visible there. To create a message by hand, for example to test a listener, only ``topic`` and ``body`` are
    needed.
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        topic: str,
        body: bytes,
        properties: Mapping[str, str] | None = None,
        broker_name: str = "",
        queue_id: int = 0,
        queue_offset: int = 0,
        physical_offset: int = 0,
        flag: int = 0,
        sys_flag: int = 0,
        born_timestamp: int = 0,
        store_timestamp: int = 0,
        born_host: bytes = _NO_HOST,
        store_host: bytes = _NO_HOST,
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
        body_error: str | None = None,
    ) -> None:
        """The hosts are in the form that a record stores: see ``model.address.pack_host``."""
        self.topic = topic
        self.body = body
        self.broker_name = broker_name
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self.physical_offset = physical_offset
        self.size_bytes = len(body)
        self.flag = flag
        self.sys_flag = sys_flag
        self.born_timestamp = born_timestamp
        self.store_timestamp = store_timestamp
        self.reconsume_times = reconsume_times
        self.prepared_transaction_offset = prepared_transaction_offset
        self.body_crc = 0
        self.body_error = body_error
        self._born_host = born_host
        self._store_host = store_host
        self._properties_text = ""
        self._properties: dict[str, str] | None = dict(properties or {})
        self._added: Mapping[str, str] | None = None

    @property
    def properties(self) -> dict[str, str]:
        if self._properties is None:
            self._properties = parse_properties(self._properties_text)
            if self._added:
                self._properties.update(self._added)
        return self._properties

    @property
    def message_id(self) -> str:
        """The id from its producer, which survives retries; the offset id if the message has none."""
        return self.properties.get(UNIQ_KEY) or self.offset_id

    @property
    def offset_id(self) -> str:
        """Where it is stored: broker address and physical offset."""
        return offset_id_text(self._store_host, self.physical_offset)

    @property
    def tags(self) -> str | None:
        return self.properties.get(TAGS)

    @property
    def keys(self) -> list[str]:
        return split_keys(self.properties.get(KEYS))

    @property
    def born_host(self) -> str:
        """``ip:port`` of the producer."""
        return host_text(self._born_host)

    @property
    def store_host(self) -> str:
        """``ip:port`` of the broker that stored it."""
        return host_text(self._store_host)

    @classmethod
    def from_record(cls, record: Record, broker_name: str) -> ReceivedMessage:
        parts: Parts = (
            record.topic,
            record.queue_id,
            record.queue_offset,
            record.physical_offset,
            record.size_bytes,
            record.flag,
            record.sys_flag,
            record.born_timestamp,
            record.born_host,
            record.store_timestamp,
            record.store_host,
            record.reconsume_times,
            record.prepared_transaction_offset,
            record.body_crc,
            record.body,
            record.properties_text,
            record.magic,
        )
        return _from_parts(parts, broker_name, None)

    def __eq__(self, other: object) -> bool:
        """Whether both are the same stored message, however they were read."""
        if not isinstance(other, ReceivedMessage):
            return NotImplemented
        return self._compared() == other._compared()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """The same with the twin and without, so that either reads what the other one has pickled."""
        own: Any = super().__getstate__()
        own, slots = own if isinstance(own, tuple) else (own, {})
        fields = {name: getattr(self, name) for name in _FIELDS}
        return copyreg.__newobj__, (type(self),), (own, {**slots, **fields})  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return (
            f"<ReceivedMessage {self.topic!r} {self.broker_name}/{self.queue_id}"
            f"@{self.queue_offset} id={self.message_id} {len(self.body)} bytes"
            f"{f' tags={self.tags!r}' if self.tags else ''}"
            f"{f' body_error={self.body_error!r}' if self.body_error else ''}>"
        )

    def _compared(self) -> tuple[object, ...]:
        own = self.properties.items() - (self._added or {}).items()
        return (
            self.topic,
            self.body,
            own,
            self.broker_name,
            self.queue_id,
            self.queue_offset,
            self.physical_offset,
            self.flag,
            self.sys_flag,
            self.born_timestamp,
            self.store_timestamp,
            self._born_host,
            self._store_host,
            self.reconsume_times,
            self.prepared_transaction_offset,
        )


def decode_messages(
    buffer: bytes | memoryview, broker_name: str, *, added: Mapping[str, str] | None = None
) -> list[ReceivedMessage]:
    """The messages of a pull reply.

    Args:
        added: properties that each of them gets in addition to its own.

    Raises:
        BadRecord: the bytes are not whole records.
    """

    def read(position: int) -> ReceivedMessage:
        return _from_parts(read_record(buffer, position, True), broker_name, added)

    return _read_all(ReceivedMessage, buffer, broker_name, added, read, crc32)


def read_all_python(
    kind: type[ReceivedMessage],
    buffer: bytes | memoryview,
    broker_name: str,
    added: Mapping[str, str] | None,
    read: Callable[[int], ReceivedMessage],
    checksum: Callable[[bytes], int],
) -> list[ReceivedMessage]:
    """What ``read`` makes of the records in the buffer, each where the one before ends.

    The twin makes most of them itself, of all the other arguments.
    """
    messages: list[ReceivedMessage] = []
    position = 0
    end = len(buffer)
    while position < end:
        message = read(position)
        position += message.size_bytes
        messages.append(message)
    return messages


_read_all = read_all_python if _twin is None else _twin.read_all


def _from_parts(parts: Parts, broker_name: str, added: Mapping[str, str] | None) -> ReceivedMessage:
    # Not through the constructor: its keywords would take a third of the time of reading a pull.
    message = ReceivedMessage.__new__(ReceivedMessage)
    (
        message.topic,
        message.queue_id,
        message.queue_offset,
        message.physical_offset,
        message.size_bytes,
        message.flag,
        sys_flag,
        message.born_timestamp,
        message._born_host,
        message.store_timestamp,
        message._store_host,
        message.reconsume_times,
        message.prepared_transaction_offset,
        message.body_crc,
        body,
        message._properties_text,
        _,
    ) = parts
    message.sys_flag = sys_flag
    message.body = body
    message.body_error = None
    if sys_flag & _COMPRESSED:
        try:
            message.body = decompress(body, sys_flag)
        except RemoteProtocolError as error:
            # Such a message must not block the messages after it.
            message.body_error = str(error)
    message.broker_name = broker_name
    message._properties = None
    message._added = added
    return message
