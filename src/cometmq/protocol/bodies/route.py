"""Bodies of the name server's answers about routes: 105, 106, 901."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from cometmq.model.ids import Int64
from cometmq.model.route import BrokerData, TopicRoute
from cometmq.protocol import fastjson
from cometmq.protocol.json_body import JsonBody


class ClusterInfo(JsonBody):
    """Reply of 106: brokers by name, and broker names by cluster."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.TABLE

    broker_addr_table: dict[str, BrokerData] = msgspec.field(default_factory=dict)
    cluster_addr_table: dict[str, list[str]] = msgspec.field(default_factory=dict)


class BrokerMemberGroup(JsonBody):
    cluster: str
    broker_name: str
    broker_addrs: dict[Int64, str] = msgspec.field(default_factory=dict)


class BrokerMemberGroupBody(JsonBody):
    """Reply of 901."""

    broker_member_group: BrokerMemberGroup | None = None


def encode_route(route: TopicRoute, *, standard: bool) -> bytes:
    """Reply of 105. ``standard`` for clients from version 401 on: quoted and sorted broker ids, ASCII only."""
    return fastjson.dumps_standard(route) if standard else fastjson.dumps(route)


def decode_route(body: bytes | memoryview) -> TopicRoute:
    """Either form. Raises RemoteProtocolError."""
    return fastjson.decode(body, TopicRoute, what="topic route")
