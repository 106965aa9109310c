"""Controllers: who leads, which replicas are in sync, elections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from cometmq.admin.calls import Calls
from cometmq.admin.errors import no_such
from cometmq.admin.fan_out import ByServer
from cometmq.admin.servers.settings import check_settings, read_settings, write_settings
from cometmq.base.errors import UsageError
from cometmq.protocol import fastjson
from cometmq.protocol.bodies.ha import ElectedMaster, ReplicasInfo, SyncStateData
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.controller import (
    CleanBrokerDataHeader,
    ElectMasterHeader,
    ElectMasterReply,
    GetMetadataInfoReply,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """Who was elected, and the group's brokers by their permanent ids."""

    master: ElectMasterReply
    members: Mapping[int, str]


class Controllers:
    """``admin.controllers``. Their addresses are given to ``Admin``; questions go to the one that leads."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def metadata(self) -> ByServer[GetMetadataInfoReply]:
        """What each controller knows of the others (1005)."""

        async def ask(address: str) -> GetMetadataInfoReply:
            reply = await self._calls.ask(address, RequestCode.CONTROLLER_GET_METADATA_INFO)
            return decode_fields(GetMetadataInfoReply, reply.ext)

        return await self._calls.fan_out.each(self._addresses(), ask)

    async def leader(self) -> str:
        """The address of the controller that leads.

        Raises:
            PartialFailure: no controller knows one, because they do not answer.
            NoSuchName: those that answer know none.
        """
        answers = await self.metadata()
        for told in answers.values():
            if told.controller_leader_address:
                return told.controller_leader_address
        answers.raise_failed("asking for the leading controller")
        raise no_such("controller", "leading", [])

    async def sync_states(
        self, broker_names: Sequence[str] = (), *, cluster: str | None = None
    ) -> dict[str, ReplicasInfo]:
        """Masters and replicas by broker name (1006): of these names, or of all that a name server knows."""
        names = list(broker_names)
        if not names:
            info = await self._calls.cluster_info()
            names = sorted(
                name
                for name, data in info.broker_addr_table.items()
                if cluster in (None, data.cluster)
            )
            if not names:
                raise no_such("cluster", cluster or "any", sorted(info.cluster_addr_table))
        reply = await self._calls.ask(
            await self.leader(),
            RequestCode.CONTROLLER_GET_SYNC_STATE_DATA,
            body=fastjson.dumps(names),
        )
        return SyncStateData.decode(reply.body).replicas_info_table

    async def elect(self, cluster: str, broker_name: str, broker_id: int) -> Election:
        """Make a broker the master of its group (1002).

        Args:
            broker_id: its permanent id, which ``sync_states`` tells.

        Raises:
            MasterStillExist: the present master is alive; a controller replaces only one that is not.
        """
        header = ElectMasterHeader(
            cluster_name=cluster,
            broker_name=broker_name,
            broker_id=broker_id,
            designate_elect=True,
        )
        leader = await self.leader()
        reply = await self._calls.ask(leader, RequestCode.CONTROLLER_ELECT_MASTER, header)
        group = ElectedMaster.decode(reply.body).broker_member_group if reply.body else None
        return Election(
            master=decode_fields(ElectMasterReply, reply.ext),
            members=dict(sorted(group.broker_addrs.items())) if group else {},
        )

    async def clean_broker(
        self,
        broker_name: str,
        *,
        cluster: str | None = None,
        broker_ids: Sequence[int] = (),
        with_living: bool = False,
    ) -> None:
        """Have controllers forget brokers that are gone for good (1011).

        Args:
            broker_ids: their permanent ids; empty: all of the name.
            with_living: those, too, that still send heartbeats.
        """
        if not with_living and not cluster:
            raise UsageError(
                "expected the cluster's name, without which living brokers are forgotten"
            )
        header = CleanBrokerDataHeader(
            broker_name=broker_name,
            cluster_name=cluster,
            broker_controller_ids_to_clean=";".join(map(str, broker_ids)) or None,
            is_clean_living_broker=with_living,
        )
        await self._calls.ask(await self.leader(), RequestCode.CLEAN_BROKER_DATA, header)

    async def settings(self) -> ByServer[dict[str, str]]:
        """The settings that controllers run with (1010)."""
        ask = partial(read_settings, self._calls, RequestCode.GET_CONTROLLER_CONFIG)
        return await self._calls.fan_out.each(self._addresses(), ask)

    async def update_settings(self, values: Mapping[str, str]) -> ByServer[str]:
        """Change settings (1009). The answers are remarks."""
        check_settings(values)
        ask = partial(write_settings, self._calls, RequestCode.UPDATE_CONTROLLER_CONFIG, values)
        return await self._calls.fan_out.each(self._addresses(), ask)

    def _addresses(self) -> tuple[str, ...]:
        if not self._calls.controllers:
            raise UsageError("no controller is given; expected addresses as Admin(controllers=...)")
        return self._calls.controllers
