"""Bodies of requests to a controller and of its replies: 1001 to 1008."""

from __future__ import annotations

import msgspec

from cometmq.model.ids import Int32, Int64
from cometmq.protocol.bodies.route import BrokerMemberGroup
from cometmq.protocol.json_body import JsonBody


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
