"""Asks controllers and brokers all the time who is master in which epoch, and writes down every change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final

from tests.chaos.judge.history import History, Sighting

from cometmq.base.errors import CometError
from cometmq.protocol.bodies.ha import EpochCache, HaStatus
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.controller import GetReplicaInfoHeader, GetReplicaInfoReply
from cometmq.remoting.client import RemotingClient

PAUSE_SECONDS: Final = 0.2
CALL_SECONDS: Final = 1.0

Host = tuple[str, str]
"""Name and address."""


class Watch:
    """Args:
    now: seconds since the run began.
    note_role: hears when a broker says of itself that it is something else than before.
    """

    def __init__(
        self,
        history: History,
        now: Callable[[], float],
        note_role: Callable[[str, str], None],
    ) -> None:
        self._history = history
        self._now = now
        self._note_role = note_role
        self._client = RemotingClient()
        self._tasks: list[asyncio.Task[None]] = []
        self._last: dict[tuple[str, str], tuple[int, str]] = {}
        self._roles: dict[str, str] = {}
        self._newest: dict[str, tuple[int, str]] = {}

    def follow_controllers(self, hosts: Iterable[Host], groups: Iterable[str]) -> None:
        for name, address in hosts:
            for group in groups:
                self._begin(partial(self._ask_controller, name, address, group))

    def follow_broker(self, host: Host, group: str) -> None:
        name, address = host
        self._begin(partial(self._ask_broker, name, address, group))

    def master(self, group: str) -> str:
        """The address of the master that was elected last; empty before the first election."""
        return self._newest.get(group, (0, ""))[1]

    def epoch(self, group: str) -> int:
        return self._newest.get(group, (0, ""))[0]

    def note_down(self, name: str) -> None:
        """What it says next is told even if it is what it said before it went."""
        self._roles.pop(name, None)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()

    def _begin(self, ask: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.create_task(self._ask_on(ask)))

    async def _ask_on(self, ask: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await ask()
            except CometError:
                pass  # It is away, or cut off; asked again below.
            await asyncio.sleep(PAUSE_SECONDS)

    async def _ask_controller(self, name: str, address: str, group: str) -> None:
        fields = encode_fields(GetReplicaInfoHeader(broker_name=group))
        reply = await self._call(address, Command(RequestCode.CONTROLLER_GET_REPLICA_INFO, fields))
        if reply.code != 0:
            return  # It does not decide, or knows nothing of the group yet.
        info = decode_fields(GetReplicaInfoReply, reply.ext)
        self._saw(name, group, info.master_epoch, info.master_address or "", is_controller=True)

    async def _ask_broker(self, name: str, address: str, group: str) -> None:
        # Asked twice, so that the epoch in between is one that it was master in.
        was_master = await self._is_master(address)
        reply = await self._call(address, Command(RequestCode.GET_BROKER_EPOCH_CACHE, {}))
        if reply.code != 0 or await self._is_master(address) is not was_master:
            return
        epochs = EpochCache.decode(reply.body).epoch_list
        epoch = epochs[-1].epoch if epochs else 0
        if was_master:
            self._saw(name, group, epoch, address, is_controller=False)
        self._is_now(name, f"master {epoch}" if was_master else "slave")

    async def _is_master(self, address: str) -> bool:
        reply = await self._call(address, Command(RequestCode.GET_BROKER_HA_STATUS, {}))
        return reply.code == 0 and HaStatus.decode(reply.body).master

    async def _call(self, address: str, request: Command) -> Command:
        return await self._client.call(address, request, CALL_SECONDS)

    def _saw(self, name: str, group: str, epoch: int, master: str, *, is_controller: bool) -> None:
        if self._last.get((name, group)) == (epoch, master):
            return
        self._last[name, group] = epoch, master
        self._history.sightings.append(
            Sighting(self._now(), name, group, epoch, master, is_controller)
        )
        if is_controller and master and epoch > self.epoch(group):
            self._newest[group] = epoch, master

    def _is_now(self, name: str, role: str) -> None:
        if self._roles.get(name) != role:
            self._roles[name] = role
            self._note_role(name, role)
