"""What a broker does by itself as long as it is the master, and can take up and lay down while it runs.

    transactions   ask producers about half messages that nobody ended
    schedule       deliver messages of delay levels
    timed          deliver messages with a time
    pops           give back what was popped and not acknowledged
    sinks          keep what writers of sinks have stored

Each duty writes to the log or to the broker's tables without being asked. A slave must not: its log is a copy of its
master's. Requests are another matter; whether they are served is for their processors to say. Sends can be served at
any time. Pops and the ends of transactions need what their duty read from the log, so they are for a master, too, or
for one that has just been it.

A duty reads from the log where it has to go on, each time it starts, so what was stored in between is neither lost nor
delivered twice. ``start`` and ``stop`` may be called in any state, and one waits for the other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Protocol

from cometmq.broker.core import BrokerCore

log = logging.getLogger("cometmq.broker")


class Duty(Protocol):
    def resume(self) -> None:
        """Go on where the log says that it stopped last; without tasks, so a test can do what they would do."""
        ...

    def start(self) -> None:
        """As ``resume``, with its tasks. Nothing happens when it runs already."""
        ...

    async def stop(self) -> None:
        """Write nothing more, and note how far it came. Nothing happens when it does not run."""
        ...


class MasterDuties:
    """
    Args:
        duties: in the order in which they start; they stop in the reverse order.
    """

    def __init__(self, core: BrokerCore, duties: Sequence[Duty]) -> None:
        self._core = core
        self._duties = duties
        self._running: list[Duty] = []
        self._turn = asyncio.Lock()

    @property
    def are_running(self) -> bool:
        return bool(self._running)

    async def start(self) -> None:
        """Take up all duties.

        Raises:
            StoreError, CorruptFile: one of them cannot go on; none is running.
        """
        async with self._turn:
            if self._running:
                return
            try:
                self._begin(lambda duty: duty.start())
            except BaseException:
                await self._lay_down()
                raise

    def resume(self) -> None:
        """As ``start``, but without tasks: a test on a fake clock does what those would do."""
        if not self._running:
            self._begin(lambda duty: duty.resume())

    async def stop(self) -> None:
        """Lay down all duties."""
        async with self._turn:
            if self._running:
                await self._lay_down()

    def _begin(self, begin: Callable[[Duty], None]) -> None:
        self._complete_topics()
        for duty in self._duties:
            self._running.append(duty)
            begin(duty)
        log.info("tasks of a master started")

    async def _lay_down(self) -> None:
        async with AsyncExitStack() as stack:
            # Whatever one of them raises, the others stop.
            for duty in self._running:
                stack.push_async_callback(duty.stop)
            self._running = []
        log.info("tasks of a master stopped")

    def _complete_topics(self) -> None:
        """What the tables lack: topics of the system, and those that a crash kept from being saved."""
        creation, store = self._core.creation, self._core.store
        creation.create_system_entries(self._core.live.current.identity)
        creation.create_lost_entries(
            {topic: max(store.queue_ids(topic)) + 1 for topic in store.topics()}
        )

    def __repr__(self) -> str:
        return f"<MasterDuties {'running' if self._running else 'stopped'}>"
