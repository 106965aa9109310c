"""A connection to one broker for requests that are sent well ahead of their replies.

A call of ``ClientInstance`` has a deadline from the moment it is sent. Whoever asks for the next megabytes before the
last ones are used up, or sends many batches and looks at the answers later, cannot say when that is. Here a request
waits without limit, and whoever waits for its reply says for how long the broker may be silent.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from cometmq.base.errors import CallTimedOut
from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection
from cometmq.remoting.large_body import LentMemory

WAIT_FACTOR_MAX: Final = 20
"""A reply is given up after so many times the allowed silence, even if the broker sends other things all the while."""

StartedCall = asyncio.Future[Command]


class BrokerLink:
    """Made by ``BulkClient.link``; closing it closes the client's connection to the address.

    Args:
        sign: signs a request, if there are credentials.
        silence_seconds: how long the broker may send nothing while somebody waits for a reply.
    """

    def __init__(
        self,
        address: str,
        connection: Connection,
        sign: Callable[[Command], None],
        silence_seconds: float,
    ) -> None:
        self.address = address
        self._connection = connection
        self._sign = sign
        self._seconds = silence_seconds

    def start(self, command: Command, memory: LentMemory | None = None) -> StartedCall:
        """Send a request. Hand what this returns to ``finish``.

        Args:
            memory: lent for the body of the reply, should it be large.

        Raises:
            ConnectionLost: the connection is closed.
            TooManyInFlight: the bound on unanswered calls is reached; nothing was sent.
        """
        self._sign(command)
        reply = self._connection.start_call(command, memory=memory)
        # Nobody may ever ask for this one.
        reply.add_done_callback(_look)
        return reply

    async def left(self) -> None:
        """Return when what was sent is on its way, as far as the limit on unsent bytes asks for it.

        A broker that does not take it in time is found silent by whoever waits for a reply.
        """
        self._connection.flush()
        if self._connection.is_congested:
            with contextlib.suppress(CallTimedOut):
                await self._connection.drained(self._seconds)

    async def finish(self, reply: StartedCall) -> Command:
        """Wait for a reply, whatever its code.

        Raises:
            CallTimedOut: the broker was silent for too long.
            ConnectionLost: the connection closed before.
        """
        now = asyncio.get_running_loop().time
        started = now()
        until = started + WAIT_FACTOR_MAX * self._seconds
        while not reply.done():
            silent_since = max(started, self._connection.last_active)
            left = min(silent_since + self._seconds, until) - now()
            if left <= 0:
                raise CallTimedOut(
                    f"{self.address} did not answer within {self._seconds:g} s", sent=True
                )
            await asyncio.wait((reply,), timeout=left)
        return reply.result()

    async def call(self, command: Command) -> Command:
        """The reply to a request, whatever its code. Raises as ``start`` and ``finish`` do."""
        return await self.finish(self.start(command))

    def close(self) -> None:
        """Whatever is under way ends with ConnectionLost."""
        self._connection.close("it is not needed any more")

    def __repr__(self) -> str:
        return f"<BrokerLink {self.address}>"


def _look(reply: StartedCall) -> None:
    if not reply.cancelled():
        reply.exception()
