"""Requests to a controller, and its one notice to brokers. A broker's id here is the permanent one, from 1 on."""

from __future__ import annotations

from cometmq.protocol.fields import Header, Int32, Int64


class AlterSyncStateSetHeader(Header):
    """Request 1001, from a master; the body is the new set with the epoch of the present one."""

    broker_name: str
    master_broker_id: Int64
    master_epoch: Int32
    invoke_time: Int64 | None = None


class AlterSyncStateSetReply(Header):
    """0 in a refusal."""

    new_sync_state_set_epoch: Int32


class ElectMasterHeader(Header):
    """Request 1002: from a broker with its own id, from an operator with ``designate_elect``, or for nobody (-1)."""

    cluster_name: str
    broker_name: str
    broker_id: Int64 = -1
    designate_elect: bool = False
    invoke_time: Int64 | None = None


class ElectMasterReply(Header):
    master_broker_id: Int64 | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None


class RegisterToControllerHeader(Header):
    """Request 1003: a broker that has an id has started, at this address."""

    cluster_name: str
    broker_name: str
    broker_id: Int64
    broker_address: str
    invoke_time: Int64 | None = None


class RegisterToControllerReply(Header):
    """The last four fields are there if a master is alive."""

    cluster_name: str
    broker_name: str
    master_broker_id: Int64 | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None


class GetReplicaInfoHeader(Header):
    """Request 1004."""

    broker_name: str


class GetReplicaInfoReply(Header):
    """Id and address are there if there is a master.

    The last field is ours, RocketMQ does not look at it: the controller cannot reach its store, and says what it knew
    last. That may be long out of date.
    """

    master_epoch: Int32
    master_broker_id: Int64 | None = None
    master_address: str | None = None
    is_remembered: bool | None = None


class GetMetadataInfoReply(Header):
    """Reply to 1005. ``peers`` is ``n0:host:port;n1:host:port;``."""

    group: str
    is_leader: bool
    peers: str
    controller_leader_id: str | None = None
    controller_leader_address: str | None = None


class NotifyRoleChangedHeader(Header):
    """Request 1008, controller to broker, one-way."""

    master_address: str | None = None
    master_broker_id: Int64 | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None


class CleanBrokerDataHeader(Header):
    """Request 1011. ``broker_controller_ids_to_clean`` is ``1;2``; without it, all of the name."""

    broker_name: str
    cluster_name: str | None = None
    broker_controller_ids_to_clean: str | None = None
    is_clean_living_broker: bool = False
    invoke_time: Int64 | None = None


class GetNextBrokerIdHeader(Header):
    """Request 1012."""

    cluster_name: str
    broker_name: str


class GetNextBrokerIdReply(Header):
    cluster_name: str
    broker_name: str
    next_broker_id: Int64


class ApplyBrokerIdHeader(Header):
    """Request 1013. ``register_check_code`` is ``address;milliseconds``: who asks, told from all others."""

    cluster_name: str
    broker_name: str
    applied_broker_id: Int64
    register_check_code: str


class ApplyBrokerIdReply(Header):
    cluster_name: str
    broker_name: str
