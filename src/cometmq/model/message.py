"""A message as a user sends it, and as a consumer gets it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cometmq.base.errors import UsageError
from cometmq.model.compression import decompress
from cometmq.model.properties import (
    KEYS,
    NAME_SEPARATOR,
    PAIR_SEPARATOR,
    RESERVED,
    TAGS,
    UNIQ_KEY,
    split_keys,
)
from cometmq.model.record import Record


@dataclass(slots=True, kw_only=True)
class Message:
    """What a producer sends: ``Message(topic="Orders", body=b"...", tags="paid", keys=["o-17"])``."""

    topic: str
    body: bytes
    tags: str | None = None
    keys: Iterable[str] = ()
    properties: dict[str, str] = field(default_factory=dict)
    flag: int = 0

    def system_properties(self) -> dict[str, str]:
        """The user's properties with tags and keys among them.

        Raises:
            UsageError: a reserved or empty name, an empty value, or one of the two separator characters.
        """
        for name, value in self.properties.items():
            if name in RESERVED:
                raise UsageError(f"property name {name!r} is reserved; choose another")
            if not name or not value:
                raise UsageError(f"property {name!r}={value!r}: name and value must not be empty")
        pairs = dict(self.properties)
        keys = [self.keys] if isinstance(self.keys, str) else list(self.keys)
        if keys:
            pairs[KEYS] = " ".join(keys)
        if self.tags:
            pairs[TAGS] = self.tags
        for name, value in pairs.items():
            if NAME_SEPARATOR in name + value or PAIR_SEPARATOR in name + value:
                raise UsageError(f"property {name!r} holds \\x01 or \\x02, which separate pairs")
        return pairs


@dataclass(slots=True, kw_only=True)
class ReceivedMessage:
    """What a consumer gets. ``body`` is plain, whatever compression it travelled in."""

    topic: str
    body: bytes
    broker_name: str
    queue_id: int
    queue_offset: int
    message_id: str
    offset_id: str
    tags: str | None
    keys: list[str]
    properties: dict[str, str]
    flag: int
    sys_flag: int
    born_timestamp: int
    store_timestamp: int
    born_host: str
    store_host: str
    reconsume_times: int
    physical_offset: int

    @classmethod
    def from_record(cls, record: Record, broker_name: str) -> ReceivedMessage:
        properties = record.properties
        return cls(
            topic=record.topic,
            body=decompress(record.body, record.sys_flag),
            broker_name=broker_name,
            queue_id=record.queue_id,
            queue_offset=record.queue_offset,
            message_id=properties.get(UNIQ_KEY) or record.offset_id,
            offset_id=record.offset_id,
            tags=properties.get(TAGS),
            keys=split_keys(properties.get(KEYS)),
            properties=properties,
            flag=record.flag,
            sys_flag=record.sys_flag,
            born_timestamp=record.born_timestamp,
            store_timestamp=record.store_timestamp,
            born_host=record.born_address,
            store_host=record.store_address,
            reconsume_times=record.reconsume_times,
            physical_offset=record.physical_offset,
        )
