"""What server and client share: the open connections, the requests worked on in the background, the bounds on both.

One sweep looks at all connections every few seconds, so no connection needs timers of its own for being idle or stuck.
What the connections receive is handled in turns (``turn``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from cometmq.remoting.connection import HELD_HANDLERS, HELD_STOPPING, Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.remoting_config import ConnectionLimits
from cometmq.remoting.turn import Turn

logger = logging.getLogger("cometmq.remoting")

PART_SECONDS: Final = 1.0
"""How long a stop waits for peers to close after us; most do so at once."""

ABORT_SECONDS: Final = 1.0
"""How long a stop waits for what was cancelled or aborted; it is gone after a few turns of the loop."""

OnClose = Callable[[Connection], None]


class Endpoint:
    """Owner of connections and of the tasks that their requests started."""

    def __init__(
        self, dispatcher: Dispatcher, limits: ConnectionLimits, on_close: OnClose | None = None
    ) -> None:
        self.limits = limits
        self.reached = dispatcher.reached
        self.connections: set[Connection] = set()
        self.handlers: set[asyncio.Task[None]] = set()
        self.handlers_bytes = 0
        """In the bodies of the requests that are worked on in the background."""
        self.unhandled_bytes = 0
        """Received by all connections, and neither handled nor dropped yet."""
        self.is_stopping = False
        self.dispatcher = dispatcher
        self.turn = Turn(dispatcher, limits.busy_poll_micros)
        self._on_close = on_close
        self._none_left: asyncio.Event = asyncio.Event()
        self._sweep_timer: asyncio.TimerHandle | None = None

    def opened(self, connection: Connection) -> None:
        self.connections.add(connection)
        if self.is_stopping:
            connection.close("this side is stopping")
        elif self._sweep_timer is None:
            self._schedule_sweep()

    def lost(self, connection: Connection) -> None:
        self.connections.discard(connection)
        if not self.connections:
            self._none_left.set()
        if self._on_close is not None and connection.peer_host:
            try:
                self._on_close(connection)
            except Exception:
                logger.exception("close hook failed peer=%s", connection.peer)

    def make_room(self) -> None:
        """More than ``received_bytes_max`` waits: handle what is complete, then cut off peers whose frames are not.

        The frame that has been incomplete longest goes first: a peer that means well completes its own in a moment.
        """
        while self.turn.is_due:
            self.turn.run()
        bytes_max = self.limits.received_bytes_max
        if self.unhandled_bytes <= bytes_max:
            return
        waiting = [connection for connection in self.connections if connection.unhandled_bytes]
        waiting.sort(key=lambda one: one.frame_began or one.last_active)
        for connection in waiting:
            # A bit more than needed, so that the next byte does not cause another search.
            if self.unhandled_bytes <= bytes_max * 3 // 4:
                break
            self.reached.count("serverReceivedBytesMax")
            logger.warning(
                "connection cut off peer=%s unhandled_bytes=%d reason=more than serverReceivedBytesMax (%d)"
                " wait to be complete",
                connection.peer,
                connection.unhandled_bytes,
                bytes_max,
            )
            connection.abort("too many bytes of all peers wait to be complete")

    def run_handler(
        self, connection: Connection, work: Coroutine[Any, Any, None], body_bytes: int
    ) -> None:
        """Work on a request in the background.

        A connection with too many of them is not read from meanwhile. Nor is one that adds a request while the bodies
        of all connections' requests are too many bytes already.
        """
        limits = self.limits
        task = asyncio.get_running_loop().create_task(work)
        self.handlers.add(task)
        self.handlers_bytes += body_bytes
        connection.handlers_running += 1
        if (
            connection.handlers_running >= limits.handlers_max
            or self.handlers_bytes > limits.received_bytes_max
        ):
            self.reached.count("serverConcurrentRequestsMax")
            connection.hold(HELD_HANDLERS)

        def finished(task: asyncio.Task[None]) -> None:
            self.handlers.discard(task)
            self.handlers_bytes -= body_bytes
            connection.handlers_running -= 1
            connection.release(HELD_HANDLERS)

        task.add_done_callback(finished)

    def quiesce(self) -> None:
        """Take no more requests; replies still go out."""
        self.is_stopping = True
        for connection in self.connections:
            connection.hold(HELD_STOPPING)

    async def stop(self, grace: float) -> None:
        """Let background requests end within ``grace`` seconds, send what is queued, close everything."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace
        self.quiesce()
        if self.handlers:
            await asyncio.wait(self.handlers, timeout=grace)
        for task in self.handlers:
            task.cancel()
        if self.handlers:
            logger.warning("handlers cancelled count=%d grace=%gs", len(self.handlers), grace)
            await asyncio.wait(self.handlers, timeout=ABORT_SECONDS)
        for connection in list(self.connections):
            if connection.is_accepted:
                connection.close_half("this side is stopping")
            else:
                connection.close("this side is stopping")
        await self._wait_none_left(min(deadline, loop.time() + PART_SECONDS))
        for connection in list(self.connections):
            connection.abort("the peer did not take the last bytes in time")
        await self._wait_none_left(loop.time() + ABORT_SECONDS)
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
            self._sweep_timer = None

    def sweep(self) -> None:
        """Close what is idle, cut off what is stuck."""
        now = asyncio.get_running_loop().time()
        for connection in list(self.connections):
            self._check(connection, now)

    def _check(self, connection: Connection, now: float) -> None:
        limits = self.limits
        if connection.closed_at is not None:
            if now - connection.closed_at > limits.close_seconds_max:
                connection.abort("the peer did not take the last bytes in time")
        elif (
            connection.congested_at is not None
            and now - connection.congested_at > limits.slow_reader_seconds_max
        ):
            self.reached.count("serverSlowReaderTimeoutSeconds")
            logger.warning(
                "slow reader cut off peer=%s unsent_bytes=%d seconds=%d",
                connection.peer,
                connection.outgoing_bytes,
                now - connection.congested_at,
            )
            connection.abort("the peer does not read")
        elif (
            connection.frame_began is not None
            and not connection.is_held
            and now - connection.frame_began > limits.frame_seconds_max
        ):
            self.reached.count("serverFrameTimeoutSeconds")
            logger.warning(
                "slow writer cut off peer=%s unhandled_bytes=%d reason=a frame took longer than"
                " serverFrameTimeoutSeconds (%d)",
                connection.peer,
                connection.unhandled_bytes,
                limits.frame_seconds_max,
            )
            connection.abort(f"a frame was not complete after {limits.frame_seconds_max:g} s")
        elif now - connection.last_active > limits.idle_seconds_max:
            self.reached.count("serverChannelMaxIdleTimeSeconds")
            logger.info("idle connection closed peer=%s", connection.peer)
            connection.close(f"idle for {limits.idle_seconds_max:g} s")

    def _schedule_sweep(self) -> None:
        limits = self.limits
        # A tenth of the shortest limit, at most five seconds: nothing outlives its limit by more than that.
        shortest = min(
            limits.idle_seconds_max, limits.slow_reader_seconds_max, limits.frame_seconds_max, 50.0
        )
        step = shortest / 10
        self._sweep_timer = asyncio.get_running_loop().call_later(step, self._sweep_and_go_on)

    def _sweep_and_go_on(self) -> None:
        self._sweep_timer = None
        self.sweep()
        if self.connections:
            self._schedule_sweep()

    async def _wait_none_left(self, deadline: float) -> None:
        if not self.connections:
            return
        self._none_left.clear()
        try:
            async with asyncio.timeout_at(deadline):
                await self._none_left.wait()
        except TimeoutError:
            pass
