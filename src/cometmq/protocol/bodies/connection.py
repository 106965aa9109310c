"""Bodies about who is connected: replies of 203, 204 and 328."""

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
    """Members of a group that want the same of a topic; without ``sub_string``: that do not subscribe to it."""

    client_ids: list[str]
    expression_type: str
    sub_string: str | None = None


class SubscriptionMismatch(JsonBody):
    """A topic that members of a group want different messages of."""

    topic: str
    camps: list[SubscriptionCamp]


class ConsumerConnection(JsonBody):
    """Reply of 203. The modes are names of the enums in ``model.consumption``.

    ``subscription_mismatch`` is ours and left out when members agree; Java's reader passes over it.
    """

    LIMITS: ClassVar[fastjson.Limits] = fastjson.TABLE

    connection_set: list[ClientConnection] = msgspec.field(default_factory=list)
    subscription_table: dict[str, SubscriptionData] = msgspec.field(default_factory=dict)
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None
    subscription_mismatch: list[SubscriptionMismatch] | None = None


class ProducerConnection(JsonBody):
    """Reply of 204."""

    connection_set: list[ClientConnection] = msgspec.field(default_factory=list)


class ProducerInfo(JsonBody):
    """``remote_ip`` is printed as Java prints a socket address: ``/ip:port``."""

    client_id: str
    remote_ip: str = msgspec.field(name="remoteIP")
    language: str | None = None
    version: Int32 = 0
    last_update_timestamp: Int64 = 0


class ProducerTable(JsonBody):
    """Reply of 328: producers by group."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.TABLE

    data: dict[str, list[ProducerInfo]] = msgspec.field(default_factory=dict)
