"""The broker of a test's cluster stops while its name server stays, and comes back once somebody has missed it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from cometmq.broker.server import Broker
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.testing.cluster import Cluster

MISSED = 2


@contextmanager
def broker_away(servers: Cluster, topic: str) -> Iterator[None]:
    """It stops at the beginning of the block and starts, elsewhere, when the route of a topic is asked for a second
    time: by one who did not give up when there was none. It has to be back at the end of the block."""
    [broker] = servers.brokers
    asked = 0
    starting: list[asyncio.Task[Broker]] = []

    def note(command: Command) -> None:
        nonlocal asked
        if command.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            asked += (command.ext or {}).get("topic") == topic
            if asked == MISSED and not starting:
                starting.append(asyncio.get_running_loop().create_task(servers.start(broker)))

    servers.run(servers.stop(broker))
    guards = servers.servers.name_server.dispatcher.guards
    guard = lambda _, command: note(command)  # noqa: E731
    guards.append(guard)
    try:
        yield
        assert starting, f"the route of {topic} was asked for {asked} times, expected {MISSED}"
    finally:
        guards.remove(guard)

        async def is_back() -> None:
            await (starting[0] if starting else servers.start(broker))

        servers.run(is_back())
