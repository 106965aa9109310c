"""Clients and the broker about each other: 34, 35, 38, 40, 46 and the two heartbeat switches of RocketMQ 5."""

from __future__ import annotations

from cometmq.protocol.fields import Header, wire


class UnregisterClientHeader(Header):
    """Request 35."""

    client_id: str = wire("clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class HeartbeatReply(Header):
    """Reply of 34. Without the first field a client stays with full heartbeats."""

    is_heartbeat_v2_supported: bool | None = wire("IS_SUPPORT_HEART_BEAT_V2", default=None)
    is_subscription_changed: bool | None = wire("IS_SUB_CHANGE", default=None)


class GetConsumerListHeader(Header):
    """Request 38."""

    consumer_group: str


class NotifyConsumerIdsChangedHeader(Header):
    """Request 40, broker to client, one-way."""

    consumer_group: str
