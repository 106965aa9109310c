"""The background work of a client instance: look up name servers, refresh routes, send heartbeats.

| Work | First | Then |
|---|---|---|
| address service, if it is used | 10 s | 120 s |
| routes | at once | 30 s, 5 s while a broker has no master; a second after a connection was lost |
| heartbeats | 1 s, and whenever there is news | 30 s, sooner after a failure; at once on a new connection |
"""

from __future__ import annotations

import asyncio
from typing import Final

from cometmq.client.aio.instance.heartbeat import Heartbeats
from cometmq.client.aio.instance.name_servers import NameServers
from cometmq.client.aio.instance.periodic import Periodic
from cometmq.client.aio.instance.routes import Routes
from cometmq.client.client_config import ClientConfig

FIRST_ROUTES_SECONDS: Final = 0.01
FIRST_HEARTBEAT_SECONDS: Final = 1.0
FIRST_LOOK_UP_SECONDS: Final = 10.0
MASTERLESS_SECONDS: Final = 5.0
"""How often routes are asked for while a broker has no master: its readers are to go back when it returns."""
AFTERWARDS_SECONDS: Final = 1.0
"""How long after an event to check its effect."""


class Background:
    def __init__(
        self,
        config: ClientConfig,
        name_servers: NameServers,
        routes: Routes,
        heartbeats: Heartbeats,
    ) -> None:
        self._name_servers = name_servers
        self._routes = routes
        self._heartbeats = heartbeats
        self._look_up_task = Periodic(
            "name-servers",
            name_servers.look_up,
            first=FIRST_LOOK_UP_SECONDS,
            every=config.address_service_millis / 1000,
        )
        self._route_task = Periodic(
            "routes",
            self._refresh_routes,
            first=FIRST_ROUTES_SECONDS,
            every=config.poll_name_server_millis / 1000,
        )
        self._heartbeat_task = Periodic(
            "heartbeat",
            self._beat,
            first=FIRST_HEARTBEAT_SECONDS,
            every=config.heartbeat_millis / 1000,
        )
        self._has_news = False
        self._is_running = False
        self._timers: dict[Periodic, asyncio.TimerHandle] = {}

    async def start(self) -> None:
        """Returns when the name servers are known, or the address service has failed."""
        self._is_running = True
        if not self._name_servers.is_static:
            await self._name_servers.look_up()
            self._look_up_task.start()
        self._route_task.start()
        self._heartbeat_task.start()
        self._routes.is_refreshed = True

    async def stop(self) -> None:
        """Returns when nothing is running any more."""
        self._is_running = False
        self._routes.is_refreshed = False
        for timer in self._timers.values():
            timer.cancel()
        for task in (self._look_up_task, self._route_task, self._heartbeat_task):
            await task.stop()

    def roles_changed(self) -> None:
        """A role was added or changed: tell the brokers at once."""
        self._has_news = True
        self._route_task.soon()
        self._heartbeat_task.soon()

    def route_changed(self) -> None:
        """The route may contain brokers that do not know us yet."""
        if self._heartbeats.has_strangers():
            self._heartbeat_task.soon()

    def connection_opened(self, address: str) -> None:
        """The broker does not know us on this connection yet."""
        if self._is_running:
            self._heartbeats.greet(address)

    def connection_lost(self, peer: str) -> None:
        """A broker has forgotten the clients of the connection."""
        self._heartbeats.lost(peer)
        # Perhaps the broker is gone, and another takes its place.
        self._afterwards(self._route_task)
        # Not at once: the broker may close every new connection.
        self._afterwards(self._heartbeat_task)

    async def _refresh_routes(self) -> float | None:
        await self._routes.refresh()
        return MASTERLESS_SECONDS if self._routes.lacks_master() else None

    async def _beat(self) -> float | None:
        has_news = self._has_news or self._heartbeats.has_strangers()
        self._has_news = False
        sooner = await self._heartbeats.beat_all()
        # A broker creates a group's retry topic when it first hears of the group.
        if has_news and self._routes.has_unknown():
            self._afterwards(self._route_task)
        return sooner

    def _afterwards(self, task: Periodic) -> None:
        if self._is_running and task not in self._timers:
            self._timers[task] = asyncio.get_running_loop().call_later(
                AFTERWARDS_SECONDS, self._timer_rang, task
            )

    def _timer_rang(self, task: Periodic) -> None:
        del self._timers[task]
        task.soon()
