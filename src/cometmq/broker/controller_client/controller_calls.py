"""What a broker asks its controllers, as typed calls. The leader among them is found when it is needed.

One that does not answer, or cannot reach its store, is asked again when no other is left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from cometmq.base.errors import CometError, ConnectFailed, RemotingError
from cometmq.base.ports import Clock
from cometmq.broker.config.config_slices import IdentityConfig
from cometmq.broker.controller_client.group_view import GroupView
from cometmq.broker.controller_client.identity_file import Applied
from cometmq.broker.replication.autoswitch.sync_state import Proposal
from cometmq.protocol.bodies.ha import ElectedMaster, SyncStateSet
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import Header, decode_fields, encode_fields
from cometmq.protocol.headers.controller import (
    AlterSyncStateSetHeader,
    ApplyBrokerIdHeader,
    ElectMasterHeader,
    ElectMasterReply,
    GetMetadataInfoReply,
    GetNextBrokerIdHeader,
    GetNextBrokerIdReply,
    GetReplicaInfoHeader,
    GetReplicaInfoReply,
    RegisterToControllerHeader,
    RegisterToControllerReply,
)
from cometmq.protocol.headers.namesrv import BrokerHeartbeatHeader
from cometmq.protocol.reply_errors import BrokerReplyError, error_for
from cometmq.remoting.client import RemotingClient

log = logging.getLogger("cometmq.broker")

CALL_SECONDS_MAX: Final = 3.0
BEAT_SECONDS_MAX: Final = 1.0


class ControllerCalls:
    """
    Args:
        controllers: their addresses.
        address: where clients find this broker.
    """

    def __init__(
        self,
        client: RemotingClient,
        controllers: Sequence[str],
        identity: IdentityConfig,
        address: str,
        clock: Clock,
    ) -> None:
        self._client = client
        self._controllers = controllers
        self._cluster = identity.cluster_name
        self._name = identity.broker_name
        self._address = address
        self._clock = clock
        self._leader: str | None = None
        self._failed: str | None = None
        """A leader that did not answer. The others may not have noticed yet."""

    async def next_id(self) -> Applied:
        """An id that is free, to apply for."""
        header = GetNextBrokerIdHeader(cluster_name=self._cluster, broker_name=self._name)
        reply = await self._call(RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, header)
        found = decode_fields(GetNextBrokerIdReply, reply.ext)
        return Applied(found.next_broker_id, f"{self._address};{self._clock.wall_ms()}")

    async def apply_id(self, applied: Applied) -> None:
        header = ApplyBrokerIdHeader(
            cluster_name=self._cluster,
            broker_name=self._name,
            applied_broker_id=applied.broker_id,
            register_check_code=applied.check_code,
        )
        await self._call(RequestCode.CONTROLLER_APPLY_BROKER_ID, header)

    async def register(self, broker_id: int) -> GroupView:
        """Say where this broker is."""
        header = RegisterToControllerHeader(
            cluster_name=self._cluster,
            broker_name=self._name,
            broker_id=broker_id,
            broker_address=self._address,
            invoke_time=self._clock.wall_ms(),
        )
        reply = await self._call(RequestCode.CONTROLLER_REGISTER_BROKER, header)
        found = decode_fields(RegisterToControllerReply, reply.ext)
        return GroupView(
            found.master_epoch or 0,
            found.master_broker_id,
            found.master_address,
            *_set_of(reply),
        )

    async def elect(self, broker_id: int) -> GroupView:
        """Ask for an election, with this broker as a candidate. If the master is alive, it stays it."""
        header = ElectMasterHeader(
            cluster_name=self._cluster,
            broker_name=self._name,
            broker_id=broker_id,
            designate_elect=False,
            invoke_time=self._clock.wall_ms(),
        )
        reply = await self._call(
            RequestCode.CONTROLLER_ELECT_MASTER,
            header,
            accepted=(ResponseCode.SUCCESS, ResponseCode.CONTROLLER_MASTER_STILL_EXIST),
        )
        found = decode_fields(ElectMasterReply, reply.ext)
        members = ElectedMaster.decode(reply.body).sync_state_set
        return GroupView(
            found.master_epoch or 0,
            found.master_broker_id,
            found.master_address,
            frozenset(members),
            found.sync_state_set_epoch or 0,
        )

    async def group(self) -> GroupView:
        """Who is the master; if no controller reaches its store, what is remembered of the last election."""
        header = GetReplicaInfoHeader(broker_name=self._name)
        view = _view(await self._call(RequestCode.CONTROLLER_GET_REPLICA_INFO, header))
        if view.is_certain:
            return view
        asked, self._leader = self._leader, None
        others = [address for address in self._controllers if address != asked]
        found = await asyncio.gather(*(self._group_at(address, header) for address in others))
        views = [view, *(one for one in found if one is not None)]
        return max(views, key=lambda one: (one.is_certain, one.epoch))

    async def alter(
        self, proposal: Proposal, broker_id: int, epoch: int
    ) -> tuple[frozenset[int], int]:
        """Propose another SyncStateSet; the one that counts from now on."""
        header = AlterSyncStateSetHeader(
            broker_name=self._name,
            master_broker_id=broker_id,
            master_epoch=epoch,
            invoke_time=self._clock.wall_ms(),
        )
        body = SyncStateSet(
            sync_state_set=sorted(proposal.members), sync_state_set_epoch=proposal.epoch
        )
        reply = await self._call(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, header, body.encode())
        return _set_of(reply)

    async def beat(self, header: BrokerHeartbeatHeader) -> None:
        """Tell all controllers that this broker lives; those that cannot be reached are left out."""
        command = Command(code=RequestCode.BROKER_HEARTBEAT, ext=encode_fields(header))
        await asyncio.gather(*(self._beat(address, command) for address in self._controllers))

    async def _group_at(self, address: str, header: GetReplicaInfoHeader) -> GroupView | None:
        """None if that controller does not answer, or knows no better."""
        try:
            return _view(await self._ask(address, RequestCode.CONTROLLER_GET_REPLICA_INFO, header))
        except CometError as error:
            log.debug("no answer controller=%s reason=%s", address, error)
            return None

    async def _beat(self, address: str, command: Command) -> None:
        try:
            async with asyncio.timeout(BEAT_SECONDS_MAX):
                await self._client.oneway(address, Command(code=command.code, ext=command.ext))
        except (CometError, TimeoutError) as error:
            log.debug("no heartbeat controller=%s reason=%s", address, error)

    async def _call(
        self,
        code: RequestCode,
        header: Header,
        body: bytes = b"",
        accepted: Sequence[int] = (ResponseCode.SUCCESS,),
    ) -> Command:
        """Raises CometError: no leader, no answer, or a refusal."""
        leader = self._leader = self._leader or await self._find_leader()
        try:
            return await self._ask(leader, code, header, body, accepted)
        except RemotingError:
            self._leader, self._failed = None, leader
            raise
        except BrokerReplyError as error:
            if error.code == ResponseCode.CONTROLLER_NOT_LEADER:
                self._leader = None
            raise

    async def _ask(
        self,
        address: str,
        code: RequestCode,
        header: Header | None = None,
        body: bytes = b"",
        accepted: Sequence[int] = (ResponseCode.SUCCESS,),
    ) -> Command:
        ext = None if header is None else encode_fields(header)
        command = Command(code=code, ext=ext, body=body)
        reply = await self._client.call(address, command, CALL_SECONDS_MAX)
        if reply.code not in accepted:
            raise error_for(reply, address)
        return reply

    async def _find_leader(self) -> str:
        """Who leads, as the first one says that knows. If nobody knows, somebody who answers: ours all can."""
        failed, self._failed = self._failed, None
        answering: str | None = None
        reason: object = "none has told"
        questions = [asyncio.ensure_future(self._who_leads(one)) for one in self._controllers]
        try:
            for question in asyncio.as_completed(questions):
                try:
                    address, leader = await question
                except CometError as error:
                    reason = error
                    continue
                if leader is not None and leader != failed:
                    return leader
                answering = answering or address
        finally:
            for one in questions:
                one.cancel()
            await asyncio.gather(*questions, return_exceptions=True)
        if answering is not None:
            return answering
        raise ConnectFailed(
            f"no leader among the controllers {';'.join(self._controllers)}: {reason}"
        )

    async def _who_leads(self, address: str) -> tuple[str, str | None]:
        reply = await self._ask(address, RequestCode.CONTROLLER_GET_METADATA_INFO)
        found = decode_fields(GetMetadataInfoReply, reply.ext)
        return address, address if found.is_leader else found.controller_leader_address or None


def _view(reply: Command) -> GroupView:
    found = decode_fields(GetReplicaInfoReply, reply.ext)
    return GroupView(
        found.master_epoch,
        found.master_broker_id,
        found.master_address,
        *_set_of(reply),
        is_certain=not found.is_remembered,
    )


def _set_of(reply: Command) -> tuple[frozenset[int], int]:
    found = SyncStateSet.decode(reply.body) if reply.body else SyncStateSet()
    return frozenset(found.sync_state_set), found.sync_state_set_epoch
