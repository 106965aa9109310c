"""Brokers of one name under a controller, with a name server: processes of one make, ours or RocketMQ 5.5.0's."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from benchmarks.parts.waiting import LOOK_SECONDS, READY_SECONDS_MAX
from tests.interop.controllers import Controller
from tests.interop.systems import Broker, NameServer, commands_of

from cometmq.base.clock import SystemClock
from cometmq.base.errors import CometError
from cometmq.broker.config.config_slices import IdentityConfig
from cometmq.broker.controller_client.controller_calls import ControllerCalls
from cometmq.broker.controller_client.group_view import GroupView
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.controller import ElectMasterHeader
from cometmq.protocol.reply_errors import error_for
from cometmq.remoting.client import RemotingClient

NAME: Final = "bench"
CLUSTER: Final = "interop-cluster"
ELECT_SECONDS_MAX: Final = 10.0
SETTINGS: Final[dict[str, object]] = {
    "brokerRole": "SLAVE",
    "brokerIP2": "127.0.0.1",
    "enableControllerMode": "true",
    "allAckInSyncStateSet": "true",
    "flushDiskType": "ASYNC_FLUSH",
    "mappedFileSizeCommitLog": 64 << 20,
}


class ControlledGroup:
    """Brokers are started one after the other, so that the first gets the id 1."""

    def __init__(
        self,
        make: str,
        directory: Path,
        name_server: NameServer,
        controller: Controller,
        count: int,
    ) -> None:
        self.make = make
        self.name_server = name_server.address
        self.brokers = [
            Broker(
                [name_server],
                directory / f"broker-{number}",
                NAME,
                **SETTINGS,
                controllerAddr=controller.address,
            )
            for number in range(1, count + 1)
        ]
        self._ids = frozenset(range(1, count + 1))
        self._commands = commands_of(make, directory / "home")
        self._controller = controller.address
        self._client = RemotingClient()
        identity = IdentityConfig(cluster_name=CLUSTER, broker_name=NAME)
        self._calls = ControllerCalls(
            self._client, [controller.address], identity, "", SystemClock()
        )

    async def start(self, broker: Broker) -> None:
        await asyncio.to_thread(broker.start, self._commands, until_known=False)

    async def master(self) -> Broker:
        """Raises CometError: there is none, or nobody says who."""
        address = (await self._calls.group()).master_address
        return next(broker for broker in self.brokers if broker.address == address)

    async def wait_for_set(self, count: int | None = None) -> None:
        """Until all brokers, or so many, are in the SyncStateSet. Raises SystemExit: it takes too long."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        found: GroupView | str = "no answer"
        while time.monotonic() < deadline:
            try:
                found = await self._calls.group()
            except CometError as error:
                found = str(error)
            else:
                if found.master_address and len(found.members) == (count or len(self._ids)):
                    return
            await asyncio.sleep(LOOK_SECONDS)
        raise SystemExit(f"no complete SyncStateSet after {READY_SECONDS_MAX:.0f} s: {found}")

    async def elect(self, broker: Broker) -> None:
        """As an operator does it. Raises CometError."""
        header = ElectMasterHeader(
            cluster_name=CLUSTER,
            broker_name=NAME,
            broker_id=self.brokers.index(broker) + 1,
            designate_elect=True,
        )
        command = Command(RequestCode.CONTROLLER_ELECT_MASTER, encode_fields(header))
        reply = await self._client.call(self._controller, command, ELECT_SECONDS_MAX)
        if reply.code:
            raise error_for(reply, self._controller)

    async def close(self) -> None:
        await self._client.close()
        for broker in self.brokers:
            broker.kill()


@contextlib.asynccontextmanager
async def controlled_group(
    make: str, directory: Path, count: int = 3
) -> AsyncIterator[ControlledGroup]:
    """All brokers are in the SyncStateSet."""
    commands = commands_of(make, directory / "home")
    with (
        NameServer(commands, directory / "namesrv").running() as name_server,
        Controller(make, commands, directory / "controller").running() as controller,
    ):
        group = ControlledGroup(make, directory, name_server, controller, count)
        try:
            for number, broker in enumerate(group.brokers, 1):
                await group.start(broker)
                await group.wait_for_set(number)
            yield group
        finally:
            await group.close()
