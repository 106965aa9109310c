"""As much of a broker of ours as its controller sees: requests, heartbeats, and a port for notices."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from cometmq.base.clock import SystemClock
from cometmq.broker.config.config_slices import IdentityConfig
from cometmq.broker.controller_client.controller_calls import ControllerCalls
from cometmq.broker.controller_client.controller_client import QUESTIONS_PER_LEASE, TICK_SECONDS
from cometmq.broker.controller_client.group_view import GroupView
from cometmq.broker.replication.autoswitch.sync_state import Proposal
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.headers.namesrv import BrokerHeartbeatHeader
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.server import RemotingServer

CLUSTER: Final = "bench"
LEASE_MS: Final = 10_000
LOG_END: Final = 1000


class PlayedBroker:
    """
    Args:
        group: all brokers of the name, this one included. The master proposes those of them that live.
    """

    def __init__(self, controller: str, name: str, group: Sequence[PlayedBroker]) -> None:
        self.id = 0
        self.is_alive = False
        self.view = GroupView()
        self.elected_at = 0.0
        """When it was told of its last election."""
        self._name = name
        self._group = group
        self._controller = controller
        self._client = RemotingClient()
        dispatcher = Dispatcher()
        dispatcher.add(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, self._noticed)
        self._server = RemotingServer(dispatcher)
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_master(self) -> bool:
        return self.is_alive and self.view.master_id == self.id

    async def start(self) -> None:
        """On return it has an id, and the group has a master."""
        self._address = f"127.0.0.1:{await self._server.start('127.0.0.1', 0)}"
        identity = IdentityConfig(cluster_name=CLUSTER, broker_name=self._name)
        self._calls = ControllerCalls(
            self._client, [self._controller], identity, self._address, SystemClock()
        )
        applied = await self._calls.next_id()
        await self._calls.apply_id(applied)
        self.id = applied.broker_id
        view = await self._calls.register(self.id)
        self.is_alive = True
        await self._beat()
        self._take(view if view.master_id is not None else await self._calls.elect(self.id))
        self._tasks = [asyncio.create_task(self._ask_on()), asyncio.create_task(self._tick_on())]

    async def stop(self) -> None:
        """As if it had died."""
        self.is_alive = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()
        await self._server.stop()

    def _noticed(self, connection: Connection, command: Command) -> None:
        self._wake.set()

    async def _ask_on(self) -> None:
        while True:
            try:
                async with asyncio.timeout(LEASE_MS / 1000 / QUESTIONS_PER_LEASE):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            self._take(await self._calls.group())

    async def _tick_on(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            await self._beat()
            living = frozenset(broker.id for broker in self._group if broker.is_alive)
            if self.is_master and living != self.view.members:
                proposal = Proposal(living, self.view.set_epoch)
                members, set_epoch = await self._calls.alter(proposal, self.id, self.view.epoch)
                self.view = self.view._replace(members=members, set_epoch=set_epoch)

    async def _beat(self) -> None:
        await self._calls.beat(
            BrokerHeartbeatHeader(
                cluster_name=CLUSTER,
                broker_addr=self._address,
                broker_name=self._name,
                broker_id=self.id,
                epoch=self.view.epoch,
                max_offset=LOG_END,
                confirm_offset=LOG_END,
                heartbeat_timeout_mills=LEASE_MS,
                election_priority=1,
            )
        )

    def _take(self, view: GroupView) -> None:
        if view.epoch > self.view.epoch and view.master_id == self.id:
            self.elected_at = time.monotonic()
        if (view.epoch, view.set_epoch) >= (self.view.epoch, self.view.set_epoch):
            self.view = view
