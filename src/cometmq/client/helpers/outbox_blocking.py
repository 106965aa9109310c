"""The outbox for programs without an event loop: the same names and guarantees as ``outbox.Outbox``.

with Producer("orders", name_servers=...) as producer:                       # of cometmq.client.sync
    with BlockingOutbox(producer, lambda: sqlite3.connect("outbox.db")) as outbox:
        outbox.send(message)
"""

from __future__ import annotations

from cometmq.base.errors import UsageError
from cometmq.client.blocks import Block
from cometmq.client.core.send.send_result import SendResult
from cometmq.client.helpers.database import Connect
from cometmq.client.helpers.outbox import Outbox, OutboxSettings
from cometmq.client.helpers.outbox_table import OutboxTable, Waiting
from cometmq.client.sync import Producer
from cometmq.client.sync import loop as loops
from cometmq.client.sync.loop import LoopThread
from cometmq.model.messages.message import Message


class BlockingOutbox(Block):
    """Thread-safe."""

    def __init__(
        self,
        producer: Producer,
        connect: Connect,
        *,
        table: OutboxTable | None = None,
        settings: OutboxSettings | None = None,
    ) -> None:
        self._outbox = Outbox(producer._aio, connect, table=table, settings=settings)
        self._loop: LoopThread | None = None

    @property
    def table(self) -> OutboxTable:
        """For messages that are part of your own transaction: ``table.add(connection, message)``."""
        return self._outbox.table

    def start(self) -> None:
        """Create the table if it does not exist, and start sending what is waiting."""
        if self._loop is not None:
            raise UsageError("the outbox is started already")
        loops.check_may_wait()
        loop = loops.acquire()
        try:
            loop.run(self._outbox.start)
        except BaseException:
            loops.release(loop)
            raise
        self._loop = loop

    def close(self) -> None:
        """Stop. Waiting messages stay in the table for the next start."""
        loop, self._loop = self._loop, None
        if loop is not None:
            try:
                loop.run(self._outbox.close)
            finally:
                loops.release(loop)

    def send(self, message: Message) -> SendResult | None:
        """Send now, or keep the message for later and return None; see ``Outbox.send``."""
        return self._running().run(self._outbox.send, message)

    def count(self) -> int:
        """How many messages are waiting."""
        return self._running().run(self._outbox.count)

    def refused(self) -> list[tuple[Waiting, str]]:
        """Messages in the table that can never be sent, each with the reason."""
        return self._running().run(self._outbox.refused)

    def wake(self) -> None:
        """Check the table now: a transaction that added a message was committed."""

        async def wake() -> None:
            self._outbox.wake()

        self._running().run(wake)

    def _running(self) -> LoopThread:
        if self._loop is None:
            raise UsageError("the outbox does not run; use it inside of `with`, or call start()")
        return self._loop
