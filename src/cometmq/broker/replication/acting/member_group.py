"""Tells the name servers every second that this broker is alive, and asks them which others of its name are.

With ``enableSlaveActingMaster`` a lost master is noticed after seconds, not minutes, even if its connections stay open.
What follows from that is decided in ``acting_master``. A name server also says by itself that the lowest id has changed
(NOTIFY_MIN_BROKER_ID_CHANGE); then the group is looked at right away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from cometmq.base.errors import CometError
from cometmq.broker.core import BrokerCore
from cometmq.broker.replication.acting.acting_config import ActingConfig
from cometmq.broker.replication.acting.acting_master import (
    GroupWatch,
    Instruction,
    MasterCame,
    MasterWent,
    StepBack,
    TakeOver,
)
from cometmq.protocol.bodies.route import BrokerMemberGroupBody
from cometmq.protocol.bodies.topic import encode_data_version
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.namesrv import (
    BrokerHeartbeatHeader,
    GetBrokerMemberGroupHeader,
    NotifyMinBrokerIdChangeHeader,
    QueryDataVersionHeader,
)
from cometmq.protocol.reply_errors import error_for
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

log = logging.getLogger("cometmq.broker")


class ActingMaster:
    """Does something between ``start`` and ``stop`` if ``enableSlaveActingMaster`` is set; for masters and slaves.

    Args:
        client: the one that registers the broker: a heartbeat over another connection would be another's.
    """

    def __init__(
        self,
        *,
        core: BrokerCore,
        client: RemotingClient,
        name_servers: Iterable[str],
        config: ActingConfig,
    ) -> None:
        self._core = core
        self._client = client
        self._name_servers = list(name_servers)
        self._config = config
        self._watch = GroupWatch(core.address)
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._silent: set[str] = set()
        core.live.on_change(lambda _: self._wake.set())

    @property
    def is_acting(self) -> bool:
        """Whether this broker stands in for its lost master."""
        return self._watch.is_acting

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, self.min_id_changed)

    def start(self) -> None:
        if self._config.is_enabled and self._name_servers and not self._tasks:
            self._tasks = [
                asyncio.create_task(self._beat_on(), name="cometmq-broker-heartbeat"),
                asyncio.create_task(self._watch_on(), name="cometmq-broker-members"),
            ]

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def min_id_changed(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(NotifyMinBrokerIdChangeHeader, command.ext)
        log.info(
            "lowest id changed id=%s address=%s lost=%s",
            header.min_broker_id,
            header.min_broker_addr,
            header.offline_broker_addr,
        )
        # Whoever reaches the port can say so. What counts is what the name servers answer.
        self._wake.set()
        return command.reply()

    async def look(self) -> None:
        """Ask which brokers of this name are there, and act accordingly. Without an answer all stays as it is."""
        members = await self.members()
        if members is None:
            return
        identity = self._core.live.current.identity
        for instruction in self._watch.saw(members, identity.broker_id, is_slave=identity.is_slave):
            self._carry_out(instruction)

    async def beat(self) -> None:
        """Tell every name server that this broker is alive."""
        await asyncio.gather(*map(self._beat, self._name_servers))

    async def _watch_on(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.look()
            except Exception:
                log.exception("members of the group not looked at")
            try:
                async with asyncio.timeout(self._config.watch_ms / 1000):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _beat_on(self) -> None:
        while True:
            try:
                await self.beat()
            except Exception:
                log.exception("heartbeat failed")
            await asyncio.sleep(self._config.heartbeat_ms / 1000)

    async def _beat(self, name_server: str) -> None:
        try:
            async with asyncio.timeout(self._config.heartbeat_timeout_ms / 1000):
                await self._client.oneway(name_server, self._heartbeat())
        except (CometError, TimeoutError) as error:
            if name_server not in self._silent:
                self._silent.add(name_server)
                log.warning("no heartbeat name_server=%s reason=%s", name_server, error)
        else:
            self._silent.discard(name_server)

    def _heartbeat(self) -> Command:
        identity, address = self._core.live.current.identity, self._core.address
        if self._config.is_old_name_server:
            header = QueryDataVersionHeader(
                broker_name=identity.broker_name,
                broker_addr=address,
                cluster_name=identity.cluster_name,
                broker_id=identity.broker_id,
            )
            return Command(
                code=RequestCode.QUERY_DATA_VERSION,
                ext=encode_fields(header),
                body=encode_data_version(self._core.topics.version),
            )
        beat = BrokerHeartbeatHeader(
            cluster_name=identity.cluster_name,
            broker_addr=address,
            broker_name=identity.broker_name,
        )
        return Command(code=RequestCode.BROKER_HEARTBEAT, ext=encode_fields(beat))

    async def members(self) -> Mapping[int, str] | None:
        """The brokers by id, as the first name server tells that answers."""
        identity = self._core.live.current.identity
        header = GetBrokerMemberGroupHeader(
            cluster_name=identity.cluster_name, broker_name=identity.broker_name
        )
        for name_server in self._name_servers:
            request = Command(code=RequestCode.GET_BROKER_MEMBER_GROUP, ext=encode_fields(header))
            try:
                reply = await self._client.call(
                    name_server, request, self._config.heartbeat_timeout_ms / 1000
                )
                if reply.code != ResponseCode.SUCCESS:
                    raise error_for(reply, name_server)
                group = BrokerMemberGroupBody.decode(reply.body).broker_member_group
            except CometError as error:
                log.debug("members not told name_server=%s reason=%s", name_server, error)
                continue
            return {} if group is None else group.broker_addrs
        return None

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case MasterCame(address):
                log.info("master is there address=%s: readers go back to it", address)
                self._core.master.note(True)
            case MasterWent():
                log.warning("master is lost: readers stay here")
                self._core.master.note(False)
            case TakeOver():
                log.warning(
                    "standing in for the lost master: readers are served; sends, pops, delayed and timed messages and "
                    "transactions wait for a master"
                )
            case StepBack():
                log.info("no longer standing in for a master")

    def __repr__(self) -> str:
        return f"<ActingMaster {self._watch!r}>"
