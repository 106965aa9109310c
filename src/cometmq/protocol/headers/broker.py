"""Requests about a broker as a process: replication, containers, and switches of RocketMQ 5."""

from __future__ import annotations

from cometmq.protocol.fields import Header, Int32, Int64, wire


class ExchangeHaInfoHeader(Header):
    """Request 906; a replica sends it empty."""

    master_ha_address: str | None = None
    master_flush_offset: Int64 | None = None
    master_address: str | None = None


class ExchangeHaInfoReply(Header):
    master_address: str | None = None
    master_ha_address: str | None = None
    master_flush_offset: Int64 | None = None


class ResetMasterFlushOffsetHeader(Header):
    """Request 908."""

    master_flush_offset: Int64


class AddBrokerHeader(Header):
    """Request 902, to a broker container."""

    config_path: str


class RemoveBrokerHeader(Header):
    """Request 903, to a broker container."""

    broker_name: str
    broker_cluster_name: str
    broker_id: Int64


class SetReadModeHeader(Header):
    """Request 2004."""

    read_ahead_mode: str = wire("READ_AHEAD_MODE")


class SwitchTimerEngineHeader(Header):
    """Request 5001."""

    engine_type: str = wire("E_T")


class GetParentTopicInfoHeader(Header):
    """Request 200075; this and the next three are about light topics."""

    topic: str


class GetLiteTopicInfoHeader(Header):
    """Request 200076."""

    parent_topic: str
    lite_topic: str


class GetLiteClientInfoHeader(Header):
    """Request 200077."""

    parent_topic: str
    group: str
    client_id: str
    max_count: Int32 | None = None


class GetLiteGroupInfoHeader(Header):
    """Request 200078."""

    group: str
    lite_topic: str | None = None
    top_k: Int32 | None = wire("topK", default=None)
