"""The dashboard as a server: its parts put together, its port, and the rounds that fill it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Final

import uvicorn

from cometmq.base.clock import SystemClock
from cometmq.base.errors import CometError, ConfigError
from cometmq.base.ports import Clock
from cometmq.client.client_config import ClientConfig
from cometmq.dashboard.alerts.book import AlertBook
from cometmq.dashboard.alerts.files import AlertFiles
from cometmq.dashboard.app import make_app
from cometmq.dashboard.audit import Audit
from cometmq.dashboard.dashboard_config import DashboardConfig, listed
from cometmq.dashboard.decoding.body_text import Bodies
from cometmq.dashboard.decoding.masks import Masks
from cometmq.dashboard.decoding.schemas import load_schemas
from cometmq.dashboard.desk import Desk
from cometmq.dashboard.door.guard import Guard
from cometmq.dashboard.listen import listen
from cometmq.dashboard.views.handlers import HANDLERS
from cometmq.dashboard.watch.history import History
from cometmq.dashboard.watch.hub import Hub
from cometmq.dashboard.watch.site import Site
from cometmq.model.address import join_address

log = logging.getLogger("cometmq.dashboard")

HOUR_MS: Final = 3_600_000
STOP_SECONDS: Final = 3
SPREAD_MS: Final = 20
"""For each open tab: so long their questions after a round are spread, so that they do not come all at once."""
KEEP_ALIVE_SECONDS: Final = 30
PRIVATE_DIRECTORY: Final = 0o700


class Dashboard:
    """``start`` it once, ``stop`` it once.

    Args:
        client: account and TLS with which the dashboard itself asks the servers.
        listening: a port that is open already, instead of the one in the settings.
    """

    def __init__(
        self,
        config: DashboardConfig,
        client: ClientConfig | None = None,
        clock: Clock | None = None,
        listening: socket.socket | None = None,
    ) -> None:
        self.config = config
        self.port = 0
        self.desk: Desk
        self._client = client or ClientConfig()
        self._clock = clock or SystemClock()
        self._listening = listening
        self._rounds: list[asyncio.Task[None]] = []
        self._stack = AsyncExitStack()

    @property
    def url(self) -> str:
        scheme = "https" if self.config.has_tls else "http"
        host = self.config.bind_address
        if host in ("", "0.0.0.0", "::"):
            host = socket.gethostname()
        return f"{scheme}://{join_address(host, self.port)}/"

    async def start(self) -> None:
        """Returns once the port is open; figures follow.

        Raises:
            ConfigError: the settings cannot be met.
            OSError: the port or the directory cannot be used.
        """
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise

    async def stop(self) -> None:
        await self._stack.aclose()

    def is_alive(self) -> bool:
        """Whether its rounds go on; a service manager asks."""
        return not any(task.done() for task in self._rounds)

    def dump(self) -> None:
        """Tell what it is doing, for SIGUSR1."""
        for site in self.desk.sites.values():
            snapshot = site.snapshot
            log.warning(
                "site name=%s as_of_ms=%d brokers=%d topics=%d groups=%d gaps=%d",
                *(site.name, snapshot.at_ms, len(snapshot.brokers), len(snapshot.topics)),
                *(len(snapshot.groups), len(snapshot.gaps)),
            )
        log.warning(
            "callers logins=%d streams=%d", len(self.desk.guard.sessions), len(self.desk.hub)
        )

    async def _start(self) -> None:
        config = self.config
        listening = self._listening or listen(config.bind_address, config.listen_port)
        self._stack.callback(listening.close)
        self.port = listening.getsockname()[1]
        directory = _directory(config.data_path)
        history = History(_in(directory, "history.db"), keep_ms=config.history_hours * HOUR_MS)
        self._stack.callback(history.close)
        audit = Audit(_in(directory, "changes.db"))
        self._stack.callback(audit.close)
        sites = [
            Site(
                one,
                client=self._client,
                controllers=config.controllers,
                proxies=config.proxies,
                clock=self._clock,
                history=history,
                certificate_path=config.certificate_path,
            )
            for one in config.sites
        ]
        for site in sites:
            await site.start()
            self._stack.push_async_callback(site.stop)
        guard = Guard(config, self._clock, has_account=self._client.credentials.is_set)
        self._stack.push_async_callback(guard.sessions.end_all)
        hub = Hub(config.streams_max)
        alerts = AlertBook(AlertFiles(directory), config.webhook, hub, self._clock)
        alerts.start()
        self._stack.push_async_callback(alerts.stop)
        self.desk = Desk(
            config=config,
            clock=self._clock,
            guard=guard,
            audit=audit,
            hub=hub,
            alerts=alerts,
            history=history,
            bodies=Bodies(
                Masks(listed(config.masked_fields)), load_schemas(listed(config.body_schemas))
            ),
            sites={site.name: site for site in sites},
        )
        self._rounds = [asyncio.create_task(self._keep_asking(site)) for site in sites]
        self._stack.push_async_callback(_cancelled, self._rounds)
        server = _Server(_uvicorn_config(self.desk))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        self._stack.push_async_callback(self._end, server, serving)
        while not server.started:
            if serving.done():
                await serving
                raise ConfigError("the web server ended at its start; its log says why")
            await asyncio.sleep(0.005)

    async def _end(self, server: uvicorn.Server, serving: asyncio.Task[None]) -> None:
        self.desk.hub.close_all()
        server.should_exit = True
        await serving

    async def _keep_asking(self, site: Site) -> None:
        """A round, and a pause. A round that fails is a bug here, is logged, and does not end the rounds."""
        interval = self.config.sample_interval_ms / 1000
        while True:
            began = self._clock.monotonic()
            try:
                await site.go()
                await self.desk.alerts.look(site)
                hub = self.desk.hub
                told = {
                    "as_of_ms": site.snapshot.at_ms,
                    "site": site.name,
                    "spread_ms": len(hub) * SPREAD_MS,
                }
                hub.tell(site.name, "snapshot", told)
            except CometError as error:
                log.warning("round failed site=%s reason=%s", site.name, error)
            except Exception:
                log.exception("round failed site=%s", site.name)
            took = self._clock.monotonic() - began
            await asyncio.sleep(max(interval - took, min(interval, 1.0)))


class _Server(uvicorn.Server):
    """Signals belong to the process, not to one of its servers."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _uvicorn_config(desk: Desk) -> uvicorn.Config:
    config = desk.config
    return uvicorn.Config(
        make_app(desk, HANDLERS),
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
        limit_concurrency=2 * config.streams_max + 200,
        ssl_certfile=config.certificate_path or None,
        ssl_keyfile=config.key_path or None,
    )


def _directory(path: str) -> Path | None:
    if not path:
        return None
    directory = Path(path)
    directory.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)
    return directory


def _in(directory: Path | None, name: str) -> Path | None:
    return directory / name if directory else None


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
