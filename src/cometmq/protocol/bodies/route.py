"""Bodies of the name server's replies about routes: 105, 106, 901."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.ids import Int64
from cometmq.model.route import QUEUES_MAX, BrokerData, TopicRoute
from cometmq.protocol import fastjson
from cometmq.protocol.json_body import JsonBody

_ROUTE_LIMITS: Final = fastjson.Limits(4 * 1024 * 1024, 150_000)
"""Enough for a topic on ten thousand brokers."""


class ClusterInfo(JsonBody):
    """Reply to 106: brokers by name, and broker names by cluster."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.TABLE

    broker_addr_table: dict[str, BrokerData] = msgspec.field(default_factory=dict)
    cluster_addr_table: dict[str, list[str]] = msgspec.field(default_factory=dict)


class BrokerMemberGroup(JsonBody):
    cluster: str
    broker_name: str
    broker_addrs: dict[Int64, str] = msgspec.field(default_factory=dict)


class BrokerMemberGroupBody(JsonBody):
    """Reply to 901."""

    broker_member_group: BrokerMemberGroup | None = None


def encode_route(route: TopicRoute, *, standard: bool) -> bytes:
    """Reply to 105. ``standard`` for clients from version 401 on: quoted and sorted broker ids, ASCII only."""
    return fastjson.dumps_standard(route) if standard else fastjson.dumps(route)


def decode_route(body: bytes | memoryview) -> TopicRoute:
    """Accepts both forms. Raises RemoteProtocolError, also for a route that cannot be true."""
    route = fastjson.decode(body, TopicRoute, what="topic route", limits=_ROUTE_LIMITS)
    if fault := route.fault():
        raise RemoteProtocolError(
            f"a route that cannot be true: {fault}, where a topic may have 0 to {QUEUES_MAX} in all"
        )
    return route
