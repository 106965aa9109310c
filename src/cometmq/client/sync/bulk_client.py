"""The blocking face of ``aio.bulk``: many queues at once, megabytes without a copy, nothing in the background.

    client = BulkClient(ClientConfig(name_servers="10.0.0.1:9876"))
    bounds, failures = client.bounds(client.queues("orders"))
    link = client.link(client.places("broker-a")[0].address, silence_seconds=10)
    started = link.start(bulk_pull_request(header), memory)
    pulled = read_bulk_pull(link.finish(started), link.address)

Its event loop runs in the caller's thread, and only while the caller waits (``callers_loop``). So a reply is received
by whoever waits for it, into the memory that was lent for it, and what was started before goes on meanwhile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from cometmq.base.errors import CometError
from cometmq.client.aio.bulk import broker_link, bulk_client
from cometmq.client.aio.bulk.broker_link import StartedCall
from cometmq.client.client_config import ClientConfig
from cometmq.client.core.broker_order import Place
from cometmq.client.core.queue_answers import Answers, Bounds
from cometmq.client.sync.callers_loop import CallersLoop
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import Header
from cometmq.remoting.large_body import LentMemory

IDLE_SECONDS_MAX: Final = 24 * 3600
"""While nobody waits, nothing is received, however much a server sends: that is not for us to hold against it."""


class BulkClient:
    """One thread at a time may use it. ``close`` it, or use it as a context manager.

    Raises:
        UsageError: no name server is given, or this thread runs an event loop.
        ConfigError: the TLS settings cannot be used.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._loop = CallersLoop()
        # What was sent has left when the loop stands still: nobody would send the rest.
        remoting = dataclasses.replace(
            config.remoting, idle_seconds_max=IDLE_SECONDS_MAX, outgoing_high_bytes=1
        )
        config = dataclasses.replace(config, remoting=remoting)

        async def make() -> bulk_client.BulkClient:
            return bulk_client.BulkClient(config)

        try:
            self._aio = self._loop.run(make)
        except BaseException:
            self._loop.close()
            raise

    def close(self) -> None:
        """Brokers hear that announced groups have left; all connections are closed. A second call does nothing."""
        if self._loop.is_usable:
            try:
                self._loop.run(self._aio.close)
            finally:
                self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def topics(self) -> list[str]:
        """All topics of the namespace. Raises NoNameServer, BrokerReplyError."""
        return self._loop.run(self._aio.topics)

    def has_brokers(self) -> bool:
        """Whether a name server knows any broker now; False, too, when none answers."""
        return self._loop.run(self._aio.has_brokers)

    def queues(self, topic: str) -> list[MessageQueue]:
        """The readable queues that a topic has now; its brokers are known from now on.

        Raises:
            NoRoute: no name server knows the topic.
            NoNameServer: none answers, and nothing is known yet.
            RemoteProtocolError: what it answers cannot be a route.
        """
        return self._loop.run(self._aio.queues, topic)

    def publish_queues(self, topic: str, *, queues_of_new: int) -> list[MessageQueue]:
        """The writable queues of a topic, or those it will have when a broker makes it.

        Args:
            queues_of_new: how many a broker is to make.

        Raises:
            UsageError: nothing may be sent to the topic.
            NoRoute, NoNameServer: no queue can be found.
        """
        return self._loop.run(self._aio.publish_queues, topic, queues_of_new=queues_of_new)

    def look_again(self, topic: str) -> None:
        """Ask where the brokers of a topic, or those that would make it, are now. Raises NoRoute, NoNameServer."""
        self._loop.run(self._aio.look_again, topic)

    def places(self, broker_name: str) -> tuple[Place, ...]:
        """The known addresses of a broker, the master's first."""
        return self._aio.places(broker_name)

    def ask(
        self,
        queues: Iterable[MessageQueue],
        code: RequestCode,
        header: Callable[[MessageQueue], Header],
    ) -> Answers:
        """One request per queue, of its master or a replica; see ``aio.bulk.queue_calls``.

        The header's topic and broker name are set here, to what they are on the wire.
        """
        return self._loop.run(self._aio.ask, queues, code, header)

    def bounds(
        self, queues: Iterable[MessageQueue]
    ) -> tuple[dict[MessageQueue, Bounds], dict[MessageQueue, CometError]]:
        """First and end offsets of those queues whose broker answers; why not of the others."""
        return self._loop.run(self._aio.bounds, queues)

    def offsets_by_time(self, times: Mapping[MessageQueue, int]) -> dict[MessageQueue, int]:
        """What brokers say is the offset of a time in ms. RocketMQ 4.9 says the nearest, others the first after it.

        Raises:
            CometError: a broker could not be asked.
        """
        return self._loop.run(self._aio.offsets_by_time, times)

    def committed(
        self, group: str, queues: Sequence[MessageQueue]
    ) -> dict[MessageQueue, int | None]:
        """The committed offsets of a group; None where there is none. Raises as ``offsets_by_time`` does."""
        return self._loop.run(self._aio.committed, group, queues)

    def commit(
        self, group: str, offsets: Mapping[MessageQueue, int]
    ) -> dict[MessageQueue, CometError]:
        """Store positions of a group at the masters; what went wrong, by queue."""
        return self._loop.run(self._aio.commit, group, offsets)

    def announce(
        self, group: str, topics: Sequence[str], expression: str, expression_type: str | None
    ) -> None:
        """Tell brokers that a group is here and what it reads, so that tools show it. Best effort: failures are logged.

        Brokers forget it unless they hear of it again within two minutes.
        """
        self._loop.run(self._aio.announce, group, topics, expression, expression_type)

    def link(self, address: str, silence_seconds: float) -> BrokerLink:
        """A connection for requests that are sent ahead; one at a time to each address.

        Args:
            silence_seconds: how long the broker may send nothing while somebody waits for a reply.

        Raises:
            ConnectFailed: nobody answers there.
        """
        return BrokerLink(self._loop, self._loop.run(self._aio.link, address, silence_seconds))

    def __repr__(self) -> str:
        return repr(self._aio)


class BrokerLink:
    """A connection to one broker; made by ``BulkClient.link``."""

    def __init__(self, loop: CallersLoop, aio: broker_link.BrokerLink) -> None:
        self._loop = loop
        self._aio = aio

    @property
    def address(self) -> str:
        return self._aio.address

    def start(self, command: Command, memory: LentMemory | None = None) -> StartedCall:
        """Send a request; return when it has left. Hand what this returns to ``finish``.

        Args:
            memory: lent for the body of the reply, should it be large.

        Raises:
            ConnectionLost: the connection is closed.
            TooManyInFlight: the bound on unanswered calls is reached; nothing was sent.
        """

        async def start() -> StartedCall:
            started = self._aio.start(command, memory)
            await self._aio.left()
            return started

        return self._loop.run(start)

    def finish(self, reply: StartedCall) -> Command:
        """Wait for a reply, whatever its code.

        Raises:
            CallTimedOut: the broker was silent for too long.
            ConnectionLost: the connection closed before.
        """
        return self._loop.run(self._aio.finish, reply)

    def call(self, command: Command) -> Command:
        """The reply to a request, whatever its code. Raises as ``start`` and ``finish`` do."""
        return self._loop.run(self._aio.call, command)

    def close(self) -> None:
        """Whatever is under way ends with ConnectionLost."""

        async def close() -> None:
            self._aio.close()

        if self._loop.is_usable:
            self._loop.run(close)

    def __repr__(self) -> str:
        return repr(self._aio)
