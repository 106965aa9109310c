"""Requests to a name server other than the route query: registration, key-value config, write permission, lists."""

from __future__ import annotations

from cometmq.protocol.fields import Header, Int32, Int64


class PutKVConfigHeader(Header):
    """Request 100."""

    namespace: str
    key: str
    value: str


class GetKVConfigHeader(Header):
    """Request 101."""

    namespace: str
    key: str


class GetKVConfigReply(Header):
    value: str


class DeleteKVConfigHeader(Header):
    """Request 102."""

    namespace: str
    key: str


class GetKVListHeader(Header):
    """Request 219."""

    namespace: str


class RegisterBrokerHeader(Header):
    """Request 103. A ``body_crc32`` of 0 means that the body is not checked."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Int64
    compressed: bool = False
    body_crc32: Int32 = 0
    enable_acting_master: bool | None = None
    heartbeat_timeout_millis: Int64 | None = None


class RegisterBrokerReply(Header):
    """For a slave: where its master is."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


class UnregisterBrokerHeader(Header):
    """Request 104."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


class QueryDataVersionHeader(Header):
    """Request 322; the version itself is the body."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


class QueryDataVersionReply(Header):
    changed: bool


class WipeWritePermHeader(Header):
    """Request 205."""

    broker_name: str


class WipeWritePermReply(Header):
    wipe_topic_count: Int32


class AddWritePermHeader(Header):
    """Request 327."""

    broker_name: str


class AddWritePermReply(Header):
    add_topic_count: Int32


class GetTopicsByClusterHeader(Header):
    """Request 224."""

    cluster: str


class DeleteTopicInNamesrvHeader(Header):
    """Request 216. With a cluster name, only that cluster's part of the route is deleted."""

    topic: str
    cluster_name: str | None = None


class RegisterTopicHeader(Header):
    """Request 217; the body is a route."""

    topic: str


class GetBrokerMemberGroupHeader(Header):
    """Request 901."""

    cluster_name: str
    broker_name: str


class BrokerHeartbeatHeader(Header):
    """Request 904, one-way."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Int64 | None = None
    epoch: Int32 | None = None
    max_offset: Int64 | None = None
    confirm_offset: Int64 | None = None
    heartbeat_timeout_mills: Int64 | None = None
    election_priority: Int32 | None = None


class NotifyMinBrokerIdChangeHeader(Header):
    """Request 905, name server to broker, one-way."""

    min_broker_id: Int64 | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None
