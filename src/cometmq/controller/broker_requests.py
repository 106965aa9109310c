"""What brokers ask of a controller, in the order of a broker's life: id, registration, heartbeats, election, set.

``remoting.dispatcher`` calls these; what they decide is in ``decisions`` and ``election``.
"""

from __future__ import annotations

import logging
from typing import Final

from cometmq.base.ports import Clock
from cometmq.controller import decisions
from cometmq.controller.decision_store import DecisionStore, look, read, settle
from cometmq.controller.decisions import SetChange
from cometmq.controller.election import ElectionRequest, Verdict
from cometmq.controller.elections import Elections, Outcome
from cometmq.controller.group import EPOCH_MAX, Decision, Group, Report
from cometmq.controller.liveness import Liveness, silence_seconds
from cometmq.controller.role_notices import set_body
from cometmq.protocol.bodies.ha import ElectedMaster, SyncStateSet
from cometmq.protocol.bodies.route import BrokerMemberGroup
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers import controller as headers
from cometmq.protocol.headers.namesrv import BrokerHeartbeatHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

_NOBODY: Final = -1

_log = logging.getLogger("cometmq.controller")


class BrokerRequests:
    def __init__(
        self, store: DecisionStore, liveness: Liveness, elections: Elections, clock: Clock
    ) -> None:
        self._store = store
        self._liveness = liveness
        self._elections = elections
        self._clock = clock

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, self._next_id)
        dispatcher.add(RequestCode.CONTROLLER_APPLY_BROKER_ID, self._apply_id)
        dispatcher.add(RequestCode.CONTROLLER_REGISTER_BROKER, self._register)
        dispatcher.add(RequestCode.BROKER_HEARTBEAT, self._heartbeat)
        dispatcher.add(RequestCode.CONTROLLER_ELECT_MASTER, self._elect)
        dispatcher.add(RequestCode.CONTROLLER_GET_REPLICA_INFO, self._replica_info)
        dispatcher.add(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, self._alter_set)

    async def _next_id(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.GetNextBrokerIdHeader, command.ext)
        cluster, name = header.cluster_name, header.broker_name
        next_id = decisions.next_id(await read(self._store, name), cluster, name)
        reply = headers.GetNextBrokerIdReply(
            cluster_name=cluster, broker_name=name, next_broker_id=next_id
        )
        return command.reply(ext=encode_fields(reply))

    async def _apply_id(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.ApplyBrokerIdHeader, command.ext)
        cluster, name = header.cluster_name, header.broker_name
        await settle(
            self._store,
            name,
            lambda group: decisions.apply_id(
                group,
                cluster=cluster,
                broker_name=name,
                applied_id=header.applied_broker_id,
                check_code=header.register_check_code,
                group_count=len(self._store.known()),
            ),
        )
        reply = headers.ApplyBrokerIdReply(cluster_name=cluster, broker_name=name)
        return command.reply(ext=encode_fields(reply))

    async def _register(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.RegisterToControllerHeader, command.ext)
        cluster, name = header.cluster_name, header.broker_name
        broker_id, address = header.broker_id, header.broker_address
        self._refuse_double(name, broker_id, address)
        decision = await settle(
            self._store,
            name,
            lambda group: decisions.register(
                group, cluster=cluster, broker_name=name, broker_id=broker_id, address=address
            ),
        )
        group = decision.group
        assert group is not None
        now = self._clock.monotonic()
        self._liveness.registered(name, broker_id, address, connection, now)
        reply = headers.RegisterToControllerReply(cluster_name=cluster, broker_name=name)
        if self._liveness.living(group, now).may_include(group.master_id):
            assert group.master is not None
            reply.master_broker_id = group.master_id
            reply.master_address = group.master.address
            reply.master_epoch = group.master_epoch
            reply.sync_state_set_epoch = group.sync_state_set_epoch
        return command.reply(ext=encode_fields(reply), body=set_body(group).encode())

    def _heartbeat(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(BrokerHeartbeatHeader, command.ext)
        if header.broker_id is None:
            raise Refused(ResponseCode.CONTROLLER_INVALID_REQUEST, "Heart beat with empty brokerId")
        held = self._store.known().get(header.broker_name)
        if held is None or header.broker_id not in held.group.members:
            raise Refused(
                ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
                f"broker {header.broker_id} of {header.broker_name} has no id here",
            )
        self._refuse_double(header.broker_name, header.broker_id, header.broker_addr)
        report = Report(
            epoch=-1 if header.epoch is None else header.epoch,
            max_offset=-1 if header.max_offset is None else header.max_offset,
            priority=EPOCH_MAX if header.election_priority is None else header.election_priority,
        )
        is_new = self._liveness.heard(
            header.broker_name,
            header.broker_id,
            header.broker_addr,
            report,
            silence_seconds(header.heartbeat_timeout_mills),
            connection,
            self._clock.monotonic(),
        )
        if is_new:
            _log.info(
                "broker alive name=%s id=%d address=%s",
                header.broker_name,
                header.broker_id,
                header.broker_addr,
            )
        return command.reply(remark="Heart beat success")

    async def _elect(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.ElectMasterHeader, command.ext)
        request = ElectionRequest(
            broker_id=None if header.broker_id == _NOBODY else header.broker_id,
            is_designated=header.designate_elect and header.broker_id != _NOBODY,
        )
        outcome = await self._elections.hold(
            header.broker_name, request, cluster=header.cluster_name
        )
        return _election_reply(command, request, outcome)

    async def _replica_info(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.GetReplicaInfoHeader, command.ext)
        group, is_certain = await look(self._store, header.broker_name)
        if group is None or not group.members:
            raise Refused(
                ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST,
                f"Broker-set {header.broker_name} is not known",
            )
        reply = headers.GetReplicaInfoReply(
            master_epoch=group.master_epoch,
            master_broker_id=group.master_id,
            master_address=None if group.master is None else group.master.address,
            is_remembered=None if is_certain else True,
        )
        return command.reply(ext=encode_fields(reply), body=set_body(group).encode())

    async def _alter_set(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.AlterSyncStateSetHeader, command.ext)
        body = SyncStateSet.decode(command.body)
        change = SetChange(
            master_id=header.master_broker_id,
            master_epoch=header.master_epoch,
            sync_state_set=frozenset(body.sync_state_set),
            sync_state_set_epoch=body.sync_state_set_epoch,
        )

        def decide(group: Group | None) -> Decision[Group]:
            living = self._liveness.living(group, self._clock.monotonic())
            return decisions.alter_sync_state_set(group, change, living)

        group = (await settle(self._store, header.broker_name, decide)).answer
        reply = headers.AlterSyncStateSetReply(new_sync_state_set_epoch=group.sync_state_set_epoch)
        return command.reply(ext=encode_fields(reply), body=set_body(group).encode())

    def _refuse_double(self, broker_name: str, broker_id: int, address: str) -> None:
        """A copy of a store has the same id. Two brokers that are one would both count as what one of them has."""
        owner = self._liveness.address(broker_name, broker_id, self._clock.monotonic())
        if owner is not None and owner != address:
            raise Refused(
                ResponseCode.CONTROLLER_BROKER_ID_INVALID,
                f"broker {broker_id} of {broker_name} is alive at {owner}, so {address} cannot be it; if its store is a"
                " copy, remove the file brokerIdentity from it",
            )


def _election_reply(command: Command, request: ElectionRequest, outcome: Outcome) -> Command:
    group, election = outcome.group, outcome.election
    if election.verdict is Verdict.NO_CANDIDATE:
        code = ResponseCode.CONTROLLER_ELECT_MASTER_FAILED
        if request.broker_id is None:
            code = ResponseCode.CONTROLLER_MASTER_NOT_AVAILABLE
        return command.reply(
            code, f"no master for broker {group.broker_name}: {election.reason}", ext={}
        )
    assert group.master is not None
    header = headers.ElectMasterReply(
        master_broker_id=group.master_id,
        master_address=group.master.address,
        master_epoch=group.master_epoch,
        sync_state_set_epoch=group.sync_state_set_epoch,
    )
    body = ElectedMaster(sync_state_set=sorted(group.sync_state_set))
    if election.verdict is Verdict.STILL_MASTER:
        return command.reply(
            ResponseCode.CONTROLLER_MASTER_STILL_EXIST,
            election.reason,
            ext=encode_fields(header),
            body=body.encode(),
        )
    body.broker_member_group = BrokerMemberGroup(
        cluster=group.cluster,
        broker_name=group.broker_name,
        broker_addrs={i: group.members[i].address for i in sorted(group.members)},
    )
    remark = (
        "acknowledged messages may be lost: " + election.reason if election.is_unclean else None
    )
    return command.reply(remark=remark, ext=encode_fields(header), body=body.encode())
