"""A caller of the dashboard's API: asks by the names of routes, and holds every answer against what the table says."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from cometmq.client import ClientConfig
from cometmq.dashboard.bodies.common import ErrorBody
from cometmq.dashboard.contract.route import Route
from cometmq.dashboard.contract.table import ROUTES
from cometmq.dashboard.dashboard_config import DashboardConfig
from cometmq.dashboard.server import Dashboard

BY_NAME = {route.name: route for route in ROUTES}
SOON_MS = 200


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The code of a refusal."""
        return msgspec.json.decode(self.body, type=ErrorBody).error.code


@dataclass
class Visitor:
    """``cookie`` and ``token`` are those of a login, or of loopback."""

    port: int
    cookie: str = ""
    token: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    async def raw(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        return await asyncio.to_thread(self._raw, method, path, body, headers or {})

    async def ask(
        self,
        name: str,
        names: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> Answer:
        """Whatever the answer is. One that is good must be of the type in the table."""
        route = BY_NAME[name]
        headers = {"X-CSRF-Token": self.token} if route.is_change else {}
        path = self._path(route, names or {}, query or {})
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        answer = await self.raw(route.method, path, content, headers)
        if answer.status == 200 and not isinstance(route.answer, str):
            msgspec.json.decode(answer.body, type=route.answer)
        elif answer.status != 200:
            assert answer.error
        return answer

    async def get(self, name: str, names: Mapping[str, str] | None = None, /, **query: Any) -> Any:
        """The good answer of a route that tells."""
        answer = await self.ask(name, names, query)
        assert answer.status == 200, (name, answer.body[:500])
        return answer.json()

    async def do(self, name: str, names: Mapping[str, str] | None = None, /, **body: Any) -> Any:
        """The good answer of a route that changes something."""
        answer = await self.ask(name, names, body=body if BY_NAME[name].body else None)
        assert answer.status == 200, (name, answer.body[:500])
        return answer.json()

    async def greet(self) -> Any:
        me = await self.get("me")
        self.token = me["csrf_token"]
        return me

    async def log_in(self, name: str, password: str) -> Answer:
        answer = await self.ask("log_in", body={"name": name, "password": password})
        if answer.status == 200:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
            self.token = answer.json()["csrf_token"]
        return answer

    def _path(self, route: Route, names: Mapping[str, str], query: Mapping[str, Any]) -> str:
        path = route.full_path
        for key, value in names.items():
            path = path.replace(f"{{{key}}}", quote(value, safe=""))
        return f"{path}?{urlencode(query)}" if query else path

    def _raw(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            cookie = {"Cookie": self.cookie} if self.cookie else {}
            given = {**self.headers, **cookie, **headers}
            connection.request(method, path, body=body, headers=given)
            reply = connection.getresponse()
            told = {key.lower(): value for key, value in reply.getheaders()}
            return Answer(reply.status, told, reply.read())
        finally:
            connection.close()


@asynccontextmanager
async def dashboard(
    name_servers: str, *, client: ClientConfig | None = None, **settings: Any
) -> AsyncIterator[tuple[Dashboard, Visitor]]:
    """A dashboard with quick rounds, and a visitor that has greeted it if no login is needed."""
    config = DashboardConfig(
        name_servers=name_servers,
        listen_port=0,
        **{
            "sample_interval_ms": SOON_MS,
            "logins_per_minute": 100,
            # Tests ask again and again until something is so.
            "requests_per_second": 10_000,
            **settings,
        },
    )
    server = Dashboard(config, client)
    await server.start()
    try:
        visitor = Visitor(server.port)
        await visitor.greet()
        yield server, visitor
    finally:
        await server.stop()
