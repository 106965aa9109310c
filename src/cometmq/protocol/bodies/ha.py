"""Replication and fail-over: the state of replication (907), and what controllers are asked and say (1001 to 1008)."""

from __future__ import annotations

import msgspec

from cometmq.model.ids import Int32, Int64
from cometmq.protocol.bodies.route import BrokerMemberGroup
from cometmq.protocol.json_body import JsonBody


class HaConnection(msgspec.Struct, rename="camel", kw_only=True):
    """A slave as its master sees it."""

    addr: str
    slave_ack_offset: int
    diff: int
    in_sync: bool
    transferred_byte_in_second: int
    transfer_from_where: int


class HaClient(msgspec.Struct, rename="camel", kw_only=True):
    """A slave as it sees itself. Times are milliseconds since 1970."""

    master_addr: str | None = None
    transferred_byte_in_second: int = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0
    activated: bool = False


class HaStatus(JsonBody, kw_only=True):
    """Reply to 907. Names as RocketMQ 5's HARuntimeInfo."""

    master: bool
    master_commit_log_max_offset: int
    in_sync_slave_nums: int
    ha_connection_info: list[HaConnection] = msgspec.field(default_factory=list)
    ha_client_runtime_info: HaClient = msgspec.field(default_factory=HaClient)


class SyncStateSet(JsonBody):
    """The brokers that have everything that was acknowledged; in 1001, 1003, 1004 and 1008."""

    sync_state_set: list[Int64] = msgspec.field(default_factory=list)
    sync_state_set_epoch: Int32 = 0


class ElectedMaster(JsonBody):
    """Reply to 1002; without the group if the old master is still alive."""

    broker_member_group: BrokerMemberGroup | None = None
    sync_state_set: list[Int64] = msgspec.field(default_factory=list)


class ReplicaIdentity(JsonBody):
    broker_name: str
    broker_id: Int64
    broker_address: str
    alive: bool


class ReplicasInfo(JsonBody):
    master_broker_id: Int64 | None = None
    master_address: str | None = None
    master_epoch: Int32 = 0
    sync_state_set_epoch: Int32 = 0
    in_sync_replicas: list[ReplicaIdentity] = msgspec.field(default_factory=list)
    not_in_sync_replicas: list[ReplicaIdentity] = msgspec.field(default_factory=list)


class SyncStateData(JsonBody):
    """Reply to 1006, by broker name."""

    replicas_info_table: dict[str, ReplicasInfo] = msgspec.field(default_factory=dict)


class EpochEntry(JsonBody):
    """One reign in a log; the last one has no end yet, which is Java's largest long."""

    epoch: Int32
    start_offset: Int64
    end_offset: Int64


class EpochCache(JsonBody):
    """Reply to 1007, of a broker."""

    cluster_name: str
    broker_name: str
    broker_id: Int64
    max_offset: Int64
    epoch_list: list[EpochEntry] = msgspec.field(default_factory=list)
