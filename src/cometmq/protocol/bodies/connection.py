"""Bodies about who is connected: replies to 203, 204 and 328."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from cometmq.model.ids import Int32, Int64
from cometmq.model.subscription import SubscriptionData
from cometmq.protocol import fastjson
from cometmq.protocol.json_body import JsonBody


class ClientConnection(JsonBody):
    client_id: str
    client_addr: str
    language: str | None = None
    version: Int32 = 0


class SubscriptionCamp(JsonBody):
    """Members of a group with the same subscription to a topic; without ``sub_string``: with none."""

    client_ids: list[str]
    expression_type: str
    sub_string: str | None = None


class SubscriptionMismatch(JsonBody):
    """A topic to which the members of a group have different subscriptions."""

    topic: str
    camps: list[SubscriptionCamp]


class ConsumerConnection(JsonBody):
    """Reply to 203. The modes are names of the enums in ``model.consumption``.

    ``subscription_mismatch`` is our extension. It is left out when members agree, and Java's reader ignores it.
    """

    LIMITS: ClassVar[fastjson.Limits] = fastjson.TABLE

    connection_set: list[ClientConnection] = msgspec.field(default_factory=list)
    subscription_table: dict[str, SubscriptionData] = msgspec.field(default_factory=dict)
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None
    subscription_mismatch: list[SubscriptionMismatch] | None = None


class ProducerConnection(JsonBody):
    """Reply to 204."""

    connection_set: list[ClientConnection] = msgspec.field(default_factory=list)


class ProducerInfo(JsonBody):
    """``remote_ip`` is printed as Java prints a socket address: ``/ip:port``."""

    client_id: str
    remote_ip: str = msgspec.field(name="remoteIP")
    language: str | None = None
    version: Int32 = 0
    last_update_timestamp: Int64 = 0


class ProducerTable(JsonBody):
    """Reply to 328: producers by group."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.TABLE

    data: dict[str, list[ProducerInfo]] = msgspec.field(default_factory=dict)
