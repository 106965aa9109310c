"""Routes, on demand and in the background. Callers that want the same route at the same time share one request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from cometmq.base.errors import CometError
from cometmq.base.ports import Clock
from cometmq.client.aio.instance.name_servers import NameServers
from cometmq.client.aio.instance.roles import RoleTable
from cometmq.client.core.route_table import RouteTable
from cometmq.client.errors import ClientClosed, NoRoute
from cometmq.model.names import AUTO_CREATE_TOPIC
from cometmq.model.route import TopicRoute

logger = logging.getLogger("cometmq.client")

UNUSED_POLLS_MAX: Final = 10
"""A route that nobody watches is forgotten if it was not used during this many polls."""


class Routes:
    """Args:
    poll_seconds: how long a route is valid if it is not refreshed in the background.
    on_change: called with the topic when its route becomes known or changes.
    """

    def __init__(
        self,
        name_servers: NameServers,
        roles: RoleTable,
        clock: Clock,
        *,
        poll_seconds: float,
        on_change: Callable[[str], None],
    ) -> None:
        self._name_servers = name_servers
        self._roles = roles
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._on_change = on_change
        self._asking: dict[str, asyncio.Task[TopicRoute]] = {}
        self._is_closed = False
        self.table = RouteTable()
        self.is_refreshed = False
        """Whether watched routes are kept fresh in the background, so that their users need not do it."""

    async def route(self, topic: str, *, fresh: bool = False) -> TopicRoute:
        """The route of a topic; the last known one if no name server answers.

        Raises:
            NoRoute: the name servers do not know the topic.
            NoNameServer: none answered and nothing is known yet.
        """
        known = self.table.route(topic)
        if known is not None and not fresh and not self.table.is_stale(topic):
            age = self.table.age(topic, self._clock.monotonic())
            if age < self._poll_seconds or (self.is_refreshed and self._roles.is_watched(topic)):
                return known
        task = self._asking.get(topic)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._ask(topic))
            self._asking[topic] = task
            task.add_done_callback(lambda done: self._asked(topic, done))
        # If one caller gives up, the request must continue for the others.
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._is_closed and task.cancelled():
                raise ClientClosed(f"route of {topic!r} not found: this client is closed") from None
            raise

    async def publish_route(self, topic: str, *, fresh: bool = False) -> TopicRoute:
        """The topic's route, or that of the topic from which new ones are created (TBW102)."""
        try:
            return await self.route(topic, fresh=fresh)
        except NoRoute as unknown:
            try:
                return await self.route(AUTO_CREATE_TOPIC, fresh=fresh)
            except NoRoute:
                raise unknown from None

    def has_unknown(self) -> bool:
        """Whether there is a watched topic without a known route."""
        return any(self.table.route(topic) is None for topic in self._roles.watched())

    def lacks_master(self) -> bool:
        """Whether a broker of a watched topic has no master now."""
        return self.table.lacks_master(self._roles.watched())

    async def refresh(self) -> None:
        """Refresh all watched routes, then forget unused routes and brokers that are no longer in any route."""
        watched = self._roles.watched()
        for topic in watched:
            try:
                await self.route(topic, fresh=True)
            except NoRoute as error:
                # The known route is kept: the topic's brokers may just be restarting.
                logger.debug("no route topic=%s reason=%s", topic, error)
            except CometError as error:
                logger.warning("route unknown topic=%s reason=%s", topic, error)
            if self._name_servers.is_silent:
                # One timeout is enough; the known routes are kept.
                break
        older_than = self._clock.monotonic() - UNUSED_POLLS_MAX * self._poll_seconds
        self.table.forget_unused(watched, older_than)
        for broker_name in self.table.forget_offline():
            logger.info("broker offline name=%s", broker_name)

    async def close(self) -> None:
        """Cancel requests in flight."""
        self._is_closed = True
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _ask(self, topic: str) -> TopicRoute:
        known = self.table.route(topic)
        try:
            route = await self._name_servers.route(topic)
        except NoRoute:
            raise
        except CometError as error:
            if known is None:
                raise
            logger.warning("last known route serves on topic=%s reason=%s", topic, error)
            self.table.confirm(topic, self._clock.monotonic())
            return known
        if not self.table.learn(topic, route, self._clock.monotonic()):
            assert known is not None
            return known
        logger.info("route learnt topic=%s is_new=%s", topic, known is None)
        self._on_change(topic)
        return route

    def _asked(self, topic: str, task: asyncio.Task[TopicRoute]) -> None:
        del self._asking[topic]
        if not task.cancelled():
            # All callers may have given up; then nobody else retrieves the exception.
            task.exception()
