"""The broker's two ports: what they serve, how they are opened, and how they fall silent at a stop.

The VIP port serves all but pulls and pops, so that long reads never stand before sends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from cometmq.base.descriptors import DescriptorShares
from cometmq.base.ports import Clock, Files
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.durability import Durability
from cometmq.protocol.codes import RequestCode
from cometmq.remoting.bounds.rates import RateLimits
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher, Guard, IsIdle, Vouch
from cometmq.remoting.server import RemotingServer

log = logging.getLogger("cometmq.broker")

DRAIN_SECONDS_MAX: Final = 6.0
"""How long a stop waits for sends whose reply waits for disk or slaves: a little longer than ``syncFlushTimeout``."""
DRAIN_STEP_SECONDS: Final = 0.005

EVERYDAY: Final = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.PULL_MESSAGE,
        RequestCode.LITE_PULL_MESSAGE,
        RequestCode.BULK_PULL,
        RequestCode.ACK_MESSAGE,
        RequestCode.BATCH_ACK_MESSAGE,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        # Lists of all groups and topics ask for each: of a group that is not online, or had no traffic yet.
        RequestCode.GET_CONSUMER_CONNECTION_LIST,
        RequestCode.GET_CONSUME_STATS,
        RequestCode.VIEW_BROKER_STATS_DATA,
        RequestCode.QUERY_MESSAGE,
        RequestCode.VIEW_MESSAGE_BY_ID,
        RequestCode.CHECK_CLIENT_CONFIG,
        RequestCode.RECALL_MESSAGE,
    }
)
"""Requests of clients at work: that one is refused is their concern, and no line in the broker's log."""


class Processor(Protocol):
    def register(self, dispatcher: Dispatcher) -> None:
        """Add a handler for each of its request codes."""
        ...


class RequestPorts:
    """Rooms say here what they serve and what they do when clients go; ``listen`` comes after them.

    Args:
        files: says how many connections may be open.
    """

    def __init__(self, config: BrokerConfig, files: Files, clock: Clock) -> None:
        self._config = config
        self._files = files
        self.main = Dispatcher()
        self.vip = Dispatcher()
        self.reached = Reached()
        """Counts for both ports."""
        self.times = self.main.times
        """Of both ports, too."""
        self.vip.times = self.times
        self.rates = RateLimits(config.remoting, self.reached, clock.monotonic)
        for dispatcher in (self.main, self.vip):
            dispatcher.everyday = EVERYDAY
            dispatcher.reached = self.reached
            self.rates.watch(dispatcher)
        self._servers: list[RemotingServer] = []
        self._on_close: list[Callable[[Connection], None]] = [self.rates.forget]
        self._on_drain: list[Callable[[], None]] = []

    def serve(self, *processors: Processor) -> None:
        """Answer requests on both ports."""
        for processor in processors:
            processor.register(self.main)
            processor.register(self.vip)

    def serve_reads(self, *processors: Processor) -> None:
        """Answer requests on the main port alone: they may take long."""
        for processor in processors:
            processor.register(self.main)

    def guard(
        self, guard: Guard, is_idle: IsIdle = lambda: False, vouch: Vouch | None = None
    ) -> None:
        """Let ``guard`` see every request before its processor does, unless it says that it lets all of them pass, or
        vouches for them."""
        self.main.stand(guard, is_idle, vouch)
        self.vip.stand(guard, is_idle, vouch)

    def on_close(self, forget: Callable[[Connection], None]) -> None:
        """Call ``forget`` with every connection that has gone, whoever closed it."""
        self._on_close.append(forget)

    def on_drain(self, answer_all: Callable[[], None]) -> None:
        """Call ``answer_all`` when no more requests are taken: whoever waits for a message gets an answer."""
        self._on_drain.append(answer_all)

    async def listen(self, dispatcher: Dispatcher, port: int) -> int:
        """Serve one of the two on a port, 0 for any free one; the bound port. ``stop`` closes it.

        Raises:
            ConfigError: the TLS settings cannot be used.
            RemotingError: the port cannot be had.
        """
        server = RemotingServer(
            dispatcher,
            config=self._config.remoting,
            tls=self._config.tls,
            on_close=self.closed,
            descriptors_below=DescriptorShares(self._files.open_max()).connections_below,
        )
        bound = await server.start(self._config.network.bind_address, port)
        self._servers.append(server)
        return bound

    def closed(self, connection: Connection) -> None:
        for forget in self._on_close:
            forget(connection)

    @property
    def connections(self) -> list[Connection]:
        """All that are open now."""
        return [one for server in self._servers for one in server.connections]

    async def drain(self, durability: Durability) -> None:
        """Take no more requests, answer those that wait for a message, disk or slaves, then close all connections."""
        for server in self._servers:
            server.quiesce()
        for answer_all in self._on_drain:
            answer_all()
        try:
            async with asyncio.timeout(DRAIN_SECONDS_MAX):
                # The mark moves before its waiters are called, so reaching the end of the log does not yet mean
                # that everybody has an answer: only an empty queue does.
                while durability.waiting:  # noqa: ASYNC110
                    await asyncio.sleep(DRAIN_STEP_SECONDS)
        except TimeoutError:
            log.warning("sends not answered count=%d", durability.waiting)
        await self.stop()

    def abort(self, reason: str) -> None:
        """Close everything at once, with requests unanswered."""
        for server in self._servers:
            server.quiesce()
            for connection in list(server.connections):
                connection.abort(reason)

    async def stop(self) -> None:
        """Take no more requests and close all connections. Harmless when that is done already."""
        for server in self._servers:
            await server.stop()
