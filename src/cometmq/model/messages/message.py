"""A message as a user sends it. ``received_message`` is what a consumer gets."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cometmq.model.messages.received_message import ReceivedMessage as ReceivedMessage


class Message(msgspec.Struct, kw_only=True):
    """What a producer sends: ``Message(topic="Orders", body=b"...", tags="paid", keys=["o-17"])``.

    Nothing is checked here; the producer checks it before sending.

    Attributes:
        keys: the keys that queries find the message by.
        sharding_key: messages with the same key go to one queue, in order, as long as the topic's queues do not change.
        delay_level: deliver after the delay of a level in the broker's list (1 = 1 s, 3 = 10 s, 18 = 2 h by default).
        delay_seconds, delay_ms: deliver after this delay; 0 means at once. RocketMQ 5 only.
        deliver_at_ms: deliver at this time (milliseconds since 1970). RocketMQ 5 only.
        wait_store_ok: False lets the broker answer before flush and replication, whatever its settings.
        internal_properties: properties that this library sets for the broker; not for applications.
    """

    topic: str
    body: bytes
    tags: str | None = None
    keys: Iterable[str] = ()
    properties: dict[str, str] = {}
    flag: int = 0
    sharding_key: str | None = None
    delay_level: int = 0
    delay_seconds: int | None = None
    delay_ms: int | None = None
    deliver_at_ms: int | None = None
    wait_store_ok: bool = True
    internal_properties: dict[str, str] = {}

    @property
    def is_delayed(self) -> bool:
        return bool(self.delay_level or self.delay_ms or self.deliver_at_ms or self.delay_seconds)
