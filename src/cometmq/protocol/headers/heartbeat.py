"""What clients and the broker tell each other about themselves: 34, 35, 38, 40, 46, and RocketMQ 5's heartbeats."""

from __future__ import annotations

from cometmq.protocol.fields import Header, wire


class UnregisterClientHeader(Header):
    """Request 35."""

    client_id: str = wire("clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class HeartbeatReply(Header):
    """Reply to 34. Without the first field, a client keeps sending full heartbeats."""

    is_heartbeat_v2_supported: bool | None = wire("IS_SUPPORT_HEART_BEAT_V2", default=None)
    is_subscription_changed: bool | None = wire("IS_SUB_CHANGE", default=None)


class GetConsumerListHeader(Header):
    """Request 38."""

    consumer_group: str


class NotifyConsumerIdsChangedHeader(Header):
    """Request 40, broker to client, one-way."""

    consumer_group: str
