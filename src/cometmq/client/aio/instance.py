"""What producers and consumers share: name servers with fail-over, routes, connections to brokers.

Next on a message's way: ``producer`` sends through it, ``pull_consumer`` reads through it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from cometmq.base.errors import RemotingError, UsageError
from cometmq.base.ports import Clock
from cometmq.base.system import SystemClock
from cometmq.client.errors import NoNameServer, NoRoute
from cometmq.model.address import split_address, split_addresses
from cometmq.model.ids import MASTER_ID
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import AUTO_CREATE_TOPIC
from cometmq.model.route import TopicRoute
from cometmq.protocol.bodies.route import decode_route
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import error_for
from cometmq.remoting.client import RemotingClient

ROUTE_SECONDS_MAX = 30.0
"""How long a route is believed before it is asked for again."""


class ClientInstance:
    """One per client object; owns its connections."""

    def __init__(self, name_servers: str | Sequence[str], *, clock: Clock | None = None) -> None:
        addresses = split_addresses(name_servers) if isinstance(name_servers, str) else name_servers
        if not addresses:
            raise UsageError("no name server given; expected addresses like 127.0.0.1:9876")
        for address in addresses:
            split_address(address)
        self._name_servers = list(addresses)
        # Clients spread themselves over the name servers; each keeps to one until it fails.
        random.shuffle(self._name_servers)
        self._clock = clock or SystemClock()
        self._remoting = RemotingClient()
        self._routes: dict[str, tuple[float, TopicRoute]] = {}
        self._addresses: dict[str, dict[int, str]] = {}

    @property
    def clock(self) -> Clock:
        return self._clock

    async def close(self) -> None:
        await self._remoting.close()

    async def route(self, topic: str, *, fresh: bool = False) -> TopicRoute:
        """The topic's route, at most 30 s old. When no name server answers, the last known one serves on.

        Raises:
            NoRoute: the name servers do not know the topic.
            NoNameServer: none answered and nothing is known yet.
        """
        known = self._routes.get(topic)
        now = self._clock.monotonic()
        if known is not None and not fresh and now - known[0] < ROUTE_SECONDS_MAX:
            return known[1]
        try:
            route = await self._ask_route(topic)
        except NoNameServer:
            if known is None:
                raise
            route = known[1]
        self._routes[topic] = (now, route)
        for data in route.broker_datas:
            self._addresses[data.broker_name] = dict(data.broker_addrs)
        return route

    async def publish_route(self, topic: str, *, fresh: bool = False) -> TopicRoute:
        """The topic's route, or that of the topic new ones are made from (TBW102)."""
        try:
            return await self.route(topic, fresh=fresh)
        except NoRoute as unknown:
            try:
                return await self.route(AUTO_CREATE_TOPIC, fresh=fresh)
            except NoRoute:
                raise unknown from None

    def forget_route(self, topic: str) -> None:
        """Ask again before the next use: a broker of the route failed or refused."""
        if (known := self._routes.get(topic)) is not None:
            self._routes[topic] = (float("-inf"), known[1])

    async def find_broker(self, queue: MessageQueue) -> str:
        """The address of the queue's broker: its master, or a slave while no master is known.

        Raises:
            NoRoute: no route of the queue's topic names the broker.
        """
        if queue.broker_name not in self._addresses:
            await self.publish_route(queue.topic)
        addresses = self._addresses.get(queue.broker_name, {})
        address = addresses.get(MASTER_ID) or next(iter(addresses.values()), None)
        if address is None:
            raise NoRoute(f"no route of topic {queue.topic!r} names broker {queue.broker_name!r}")
        return address

    async def call(self, address: str, command: Command, timeout: float) -> Command:
        return await self._remoting.call(address, command, timeout)

    async def oneway(self, address: str, command: Command) -> None:
        await self._remoting.oneway(address, command)

    async def _ask_route(self, topic: str) -> TopicRoute:
        failures: list[str] = []
        for _ in self._name_servers:
            address = self._name_servers[0]
            request = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
            try:
                reply = await self._remoting.call(address, request, timeout=3.0)
            except RemotingError as error:
                failures.append(f"{address}: {error}")
                self._name_servers.append(self._name_servers.pop(0))
                continue
            if reply.code == ResponseCode.SUCCESS:
                return decode_route(bytes(reply.body))
            if reply.code == ResponseCode.TOPIC_NOT_EXIST:
                raise NoRoute(
                    f"no name server knows topic {topic!r}; create it, or check its spelling"
                )
            raise error_for(reply, address)
        raise NoNameServer(f"no name server answered ({'; '.join(failures)})")
