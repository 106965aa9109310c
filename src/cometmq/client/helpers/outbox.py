"""Sends that do not get lost: what no broker accepts now is kept in a database and sent later, in order.

    async with Producer("orders", name_servers=...) as producer:
        async with Outbox(producer, lambda: sqlite3.connect("outbox.db")) as outbox:
            await outbox.send(message)          # a SendResult, or None: kept for later

While messages are waiting, new ones queue up behind them, so all of them arrive in the order of the calls. A message
is removed after a broker has confirmed it; after a crash in between it is sent again: at-least-once, with the same
message id.

To send a message if and only if your own transaction is committed, put it into the same database with
``outbox.table.add(connection, message)`` inside that transaction. Nothing is sent if it is rolled back.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import msgspec

from cometmq.base.clock import SystemClock
from cometmq.base.errors import CometError, UsageError
from cometmq.base.ports import Clock
from cometmq.client.aio.send.unique_key_month import month_of
from cometmq.client.blocks import AsyncBlock
from cometmq.client.core.send.send_result import SendResult
from cometmq.client.helpers.database import Connect, Connection, DatabaseThread
from cometmq.client.helpers.outbox_table import OutboxFull, OutboxTable, Waiting
from cometmq.model.messages.message import Message
from cometmq.model.messages.properties import UNIQ_KEY
from cometmq.model.messages.unique_key import UniqueKeys
from cometmq.protocol.reply_errors import MessageIllegal

__all__ = ["Outbox", "OutboxFull", "OutboxSettings", "OutboxTable", "Waiting"]

logger = logging.getLogger("cometmq.client")

Result = TypeVar("Result")

READ_COUNT: Final = 100
_HOST: Final = bytes((127, 0, 0, 1))


class SendingProducer(Protocol):
    """The part of a producer that is used."""

    async def send(self, message: Message) -> SendResult: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxSettings:
    """How often to poll and to retry.

    ``poll_seconds`` is how often the table is checked for messages of other transactions. After a failed send, the
    back-off grows from ``pause_seconds`` to ``pause_seconds_max``.
    """

    poll_seconds: float = 1.0
    pause_seconds: float = 1.0
    pause_seconds_max: float = 30.0


class Outbox(AsyncBlock):
    """Use one per table: two on the same table at once would send messages twice.

    Args:
        producer: a running producer of ``cometmq.client.aio``.
        connect: opens a connection to the database.
    """

    def __init__(
        self,
        producer: SendingProducer,
        connect: Connect,
        *,
        table: OutboxTable | None = None,
        settings: OutboxSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._producer = producer
        self._clock: Clock = clock or SystemClock()
        self._connect = connect
        self.table = table or OutboxTable(clock=self._clock)
        self._settings = settings or OutboxSettings()
        self._keys = UniqueKeys(
            address=_HOST,
            process_id=os.getpid(),
            instance_hash=random.getrandbits(32),
            month_of=month_of,
        )
        self._database: DatabaseThread | None = None
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._has_waiting = False
        self._order = asyncio.Lock()

    async def start(self) -> None:
        """Create the table if it does not exist, and start sending what is waiting."""
        if self._database is not None:
            raise UsageError("the outbox is started already")
        self._database = DatabaseThread(self._connect, "cometmq-outbox")
        try:
            await self._work(self.table.create)
            self._has_waiting = await self.count() > 0
        except BaseException:
            self._database.close()
            self._database = None
            raise
        self._task = asyncio.get_running_loop().create_task(self._run(), name="cometmq-outbox")

    async def close(self) -> None:
        """Stop. Waiting messages stay in the table for the next start."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        database, self._database = self._database, None
        if database is not None:
            await asyncio.to_thread(database.close)

    async def send(self, message: Message) -> SendResult | None:
        """Send now, or keep the message for later and return None. Calls are handled one after the other.

        Raises:
            UsageError, MessageIllegal: the message can never be sent as it is; it is not kept.
            OutboxFull: it could not be sent, and too many are waiting already.
        """
        message = self._named(message)
        async with self._order:
            if not self._has_waiting:
                try:
                    return await self._producer.send(message)
                except CometError as error:
                    if not _may_succeed_later(error):
                        raise
                    logger.warning("send failed, kept in the outbox reason=%s", error)
                    await self._keep(message, error)
                    return None
            await self._keep(message, None)
            return None

    async def count(self) -> int:
        """How many messages are waiting."""
        return await self._work(self.table.count)

    async def refused(self) -> list[tuple[Waiting, str]]:
        """Messages in the table that can never be sent, each with the reason. They wait for a human."""
        return await self._work(self.table.refused)

    def wake(self) -> None:
        """Check the table now: a transaction that added a message was committed."""
        self._news.set()

    async def _keep(self, message: Message, cause: CometError | None) -> None:
        try:
            await self._work(lambda connection: self.table.add(connection, message))
        except OutboxFull as full:
            raise full from cause
        self._has_waiting = True
        self._news.set()

    async def _run(self) -> None:
        settings = self._settings
        pause = settings.pause_seconds
        while True:
            try:
                is_through = await self._send_waiting()
            except Exception:
                # The database is unavailable. `send` fails with its error; messages in the table can wait.
                logger.exception("outbox cannot be read")
                is_through = False
            if is_through:
                pause = settings.pause_seconds
                await self._wait(settings.poll_seconds)
            else:
                await asyncio.sleep(pause)
                pause = min(pause * 2, settings.pause_seconds_max)

    async def _send_waiting(self) -> bool:
        """Whether the table is empty; False if a send failed, so that later messages have to wait."""
        while True:
            waiting = await self._work(lambda connection: self.table.oldest(connection, READ_COUNT))
            for each in waiting:
                if not await self._send_one(each):
                    return False
            if len(waiting) < READ_COUNT and await self._is_empty():
                return True

    async def _is_empty(self) -> bool:
        # No send may append a message between this check and its consequences.
        async with self._order:
            self._has_waiting = await self.count() > 0
            return not self._has_waiting

    async def _send_one(self, waiting: Waiting) -> bool:
        # A message that a user's transaction added has no id yet; with an id, a repeated send can be recognised.
        message = waiting.message
        if UNIQ_KEY not in message.internal_properties:
            message = self._named(message)
        try:
            await self._producer.send(message)
        except CometError as error:
            if _may_succeed_later(error):
                logger.warning("outbox waits reason=%s", error)
                return False
            reason = f"{type(error).__name__}: {error}"
            logger.error("outbox message refused place=%s reason=%s", waiting.place, reason)
            await self._work(lambda c: self.table.refuse(c, waiting.place, reason))
            return True
        await self._work(lambda connection: self.table.remove(connection, waiting.place))
        return True

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            pass
        self._news.clear()

    async def _work(self, work: Callable[[Connection], Result]) -> Result:
        if self._database is None:
            raise UsageError("the outbox does not run; use it inside of `async with`")
        return await asyncio.wrap_future(self._database.begin(work))

    def _named(self, message: Message) -> Message:
        """A copy with an id that is the same for all sends of it."""
        name = self._keys.next(self._clock.wall_ms())
        internal = {UNIQ_KEY: name, **message.internal_properties}
        keys = message.keys if isinstance(message.keys, str) else [*message.keys]
        return msgspec.structs.replace(message, keys=keys, internal_properties=internal)


def _may_succeed_later(error: CometError) -> bool:
    """Whether the error is about the state of the cluster and not about the message.

    This includes a topic without a route: its brokers may be down, or it does not exist yet.
    """
    return not isinstance(error, UsageError | MessageIllegal)
