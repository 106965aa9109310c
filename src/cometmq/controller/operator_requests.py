"""What operators ask of a controller: who decides, who is in sync, which brokers to forget, its own settings."""

from __future__ import annotations

from collections.abc import Callable

from cometmq.base.ports import Clock
from cometmq.controller import decisions
from cometmq.controller.controller_config import LiveConfig
from cometmq.controller.decision_store import DecisionStore, look, settle
from cometmq.controller.group import Decision, Group, Living
from cometmq.controller.liveness import Liveness
from cometmq.controller.peers import Roster
from cometmq.protocol import fastjson
from cometmq.protocol.bodies.ha import ReplicaIdentity, ReplicasInfo, SyncStateData
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers import controller as headers
from cometmq.protocol.refusal import Refused
from cometmq.protocol.settings_request import change_settings
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher


class OperatorRequests:
    def __init__(
        self,
        store: DecisionStore,
        liveness: Liveness,
        config: LiveConfig,
        clock: Clock,
        roster: Callable[[], Roster],
    ) -> None:
        self._store = store
        self._liveness = liveness
        self._config = config
        self._clock = clock
        self._roster = roster

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.CONTROLLER_GET_METADATA_INFO, self._metadata)
        dispatcher.add(RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, self._sync_state_data)
        dispatcher.add(RequestCode.CLEAN_BROKER_DATA, self._clean)
        dispatcher.add(RequestCode.UPDATE_CONTROLLER_CONFIG, self._update_config)
        dispatcher.add(RequestCode.GET_CONTROLLER_CONFIG, self._get_config)

    def _metadata(self, connection: Connection, command: Command) -> Command:
        roster = self._roster()
        leader = roster.leader
        reply = headers.GetMetadataInfoReply(
            group=self._config.current.group,
            controller_leader_id=None if leader is None else leader.name,
            controller_leader_address=None if leader is None else leader.address,
            is_leader=roster.is_leader,
            peers="".join(f"{peer.name}:{peer.address};" for peer in roster.peers),
        )
        return command.reply(ext=encode_fields(reply))

    async def _sync_state_data(self, connection: Connection, command: Command) -> Command:
        names = fastjson.decode(command.body, list[str], what="list of broker names")
        table: dict[str, ReplicasInfo] = {}
        for name in dict.fromkeys(names):
            group = (await look(self._store, name)).group
            if group is not None and group.members:
                table[name] = replicas_info(
                    group, self._liveness.living(group, self._clock.monotonic())
                )
        return command.reply(body=SyncStateData(replicas_info_table=table).encode())

    async def _clean(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.CleanBrokerDataHeader, command.ext)
        ids = _ids(header.broker_controller_ids_to_clean)

        def decide(group: Group | None) -> Decision[frozenset[int]]:
            return decisions.clean(
                group,
                broker_name=header.broker_name,
                cluster=header.cluster_name,
                ids=ids,
                living=self._liveness.living(group, self._clock.monotonic()),
                even_alive=header.is_clean_living_broker,
            )

        decision = await settle(self._store, header.broker_name, decide)
        self._liveness.forget(header.broker_name, decision.answer)
        return command.reply()

    def _update_config(self, connection: Connection, command: Command) -> Command:
        return change_settings(
            command, self._config.update, denial="Can not update config in black list: "
        )

    def _get_config(self, connection: Connection, command: Command) -> Command:
        return command.reply(body=self._config.text().encode())


def replicas_info(group: Group, living: Living) -> ReplicasInfo:
    replicas = [
        ReplicaIdentity(
            broker_name=group.broker_name,
            broker_id=broker_id,
            broker_address=group.members[broker_id].address,
            alive=broker_id in living.reports,
        )
        for broker_id in sorted(group.members)
    ]
    return ReplicasInfo(
        master_broker_id=group.master_id,
        master_address=None if group.master is None else group.master.address,
        master_epoch=group.master_epoch,
        sync_state_set_epoch=group.sync_state_set_epoch,
        in_sync_replicas=[r for r in replicas if r.broker_id in group.sync_state_set],
        not_in_sync_replicas=[r for r in replicas if r.broker_id not in group.sync_state_set],
    )


def _ids(text: str | None) -> list[int] | None:
    """``1;2``; None, for all, if there is no such field."""
    if text is None or not text.strip():
        return None
    try:
        return [int(part) for part in text.split(";") if part.strip()]
    except ValueError:
        raise Refused(
            ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA,
            "brokerControllerIdsToClean must be ids like 1;2",
        ) from None
