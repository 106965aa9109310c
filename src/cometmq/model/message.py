"""A message as a user sends it. ``received_message`` has what a consumer gets."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cometmq.model.received_message import ReceivedMessage as ReceivedMessage


class Message(msgspec.Struct, kw_only=True):
    """What a producer sends: ``Message(topic="Orders", body=b"...", tags="paid", keys=["o-17"])``.

    Nothing is checked here; the producer does that before it sends anything.

    Attributes:
        keys: what the message can be found by later.
        sharding_key: messages with the same one go to the same queue, in order, as long as the topic's queues stay.
        delay_level: deliver later by a level of the broker's list (1 = 1 s, 3 = 10 s, 18 = 2 h by default).
        delay_seconds, delay_ms: deliver so much later, or at once when it is 0. RocketMQ 5 only.
        deliver_at_ms: deliver at this time (milliseconds since 1970). RocketMQ 5 only.
        wait_store_ok: False lets the broker answer before flush and replication, whatever it promises to others.
        internal_properties: what this library itself tells brokers about the message; not for applications.
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
