"""A turn of the event loop: everything between "bytes have arrived" and "replies are written".

Connections that have received something queue up here. The next iteration of the loop runs one turn for all of them:

1. Each connection's commands go to the dispatcher. Handlers of gathered kinds (``Dispatcher.gather``) only prepare.
2. Each gathered kind is finished: all sends are appended with one write, for example.
3. Each connection's replies leave in one write.
4. The loop busy-polls for more before it sleeps (``busy_poll``).

The same work for many requests in a row is much faster than all the work for one request after the other. Figures and
reasons: docs/decisions/0016-one-kind-of-work-at-a-time.md.

The order of effects:

- A request that is not gathered is handled after everything gathered before it has been finished, on all connections.
- A gathered request is handled after the gathered requests of other kinds before it on its own connection have been
  finished. Requests of different connections have no order, so their kinds are gathered side by side.
- Kinds are finished in the order in which their first requests came.

A turn has a time limit. Once it is over, the remaining connections get a few of their commands handled each, and the
rest waits for the next turn. So a peer that sends little is not kept waiting by one that sends without end.

A turn never awaits, so turns do not overlap, not even those of two endpoints that share their handlers. Everything here
belongs to the event loop's thread.

Before this on a message's way: ``connection``; next: ``dispatcher``.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from time import monotonic
from typing import Any, Final

from cometmq.protocol.command import FLAG_RESPONSE, Command
from cometmq.remoting.busy_poll import BusyPoll
from cometmq.remoting.connection import HELD_TURN, Connection
from cometmq.remoting.dispatcher import Dispatcher, Finish

logger = logging.getLogger("cometmq.remoting")

TURN_SECONDS: Final = 0.005
"""How long commands are handled before the loop looks at its sockets again."""

STEP_COUNT: Final = 16
"""Commands handled between two looks at the clock, and of each connection in every turn."""

LEFT_COUNT_MAX: Final = 256
"""A connection with more commands than this left after its turn is not read from until they are handled."""


class Turn:
    """The turns of one endpoint, one after the other."""

    def __init__(self, dispatcher: Dispatcher, busy_poll_micros: int = 0) -> None:
        self._dispatcher = dispatcher
        self._times = dispatcher.times
        self._dispatch = dispatcher.dispatch
        self._kinds = dispatcher.kinds
        self._arrived: list[Connection] = []
        self._open: list[Finish] = []
        """The kinds with gathered requests, in the order of their first ones."""
        self._busy_poll = BusyPoll(busy_poll_micros)

    @property
    def is_due(self) -> bool:
        """Whether a connection waits for the next turn."""
        return bool(self._arrived)

    def add(self, connection: Connection) -> None:
        """Handle the connection's commands in the next turn."""
        if not connection.is_queued:
            if not self._arrived:
                asyncio.get_running_loop().call_soon(self.run)
            connection.is_queued = True
            self._arrived.append(connection)

    def run(self) -> None:
        """Take one turn."""
        arrived, self._arrived = self._arrived, []
        started = monotonic()
        deadline = started + TURN_SECONDS
        for connection in arrived:
            connection.is_queued = False
            self._handle(connection, deadline)
        handled = monotonic()
        self.finish()
        for connection in arrived:
            connection.flush()
        self._times.turn_over(started, handled)
        self._busy_poll.worked()

    def run_alone(self, connection: Connection) -> None:
        """Take a turn for a connection that is about to end, and leave nothing over."""
        started = monotonic()
        self._handle(connection, math.inf)
        handled = monotonic()
        self.finish()
        connection.flush()
        self._times.turn_over(started, handled)

    def finish(self) -> None:
        """Finish all gathered kinds."""
        if not self._open:
            return
        kinds, self._open = self._open, []
        for finish in kinds:
            try:
                finish()
            except Exception:
                # A bug in one kind must not cost the others their replies.
                logger.exception("gathered requests not finished")

    def _handle(self, connection: Connection, deadline: float) -> None:
        """Handle the connection's commands until they are done, reading is held, or time is up."""
        dispatch, kinds = self._dispatch, self._kinds
        commands: deque[Any] = connection.commands
        code: int | None = None  # of the request before
        own: Finish | None = None  # the kind of this connection's gathered requests
        connection.held &= ~HELD_TURN
        connection.is_handling = True
        try:
            while commands and not connection.held:
                for _ in range(min(STEP_COUNT, len(commands))):
                    command = commands.popleft()
                    if command.flag & FLAG_RESPONSE:
                        connection.take_reply(command)
                    else:
                        # Requests of one code come in runs: the first of a run decides for all.
                        if command.code != code:
                            code = command.code
                            kind = kinds.get(code)
                            if kind is None:
                                if self._open:
                                    self.finish()
                            elif kind is not own:
                                if own is not None:
                                    self.finish()
                                if kind not in self._open:
                                    self._open.append(kind)
                            own = kind
                        # A peer may send a negative number, too.
                        if command.code < 0 and type(command) is not Command:
                            self._dispatcher.dispatch_cut(connection, command)
                        else:
                            dispatch(connection, command)
                    if connection.held:
                        break
                if commands and monotonic() > deadline:
                    break
        finally:
            connection.is_handling = False
        if connection.held:
            return
        if not commands:
            connection.read_on()
            return
        if len(commands) > LEFT_COUNT_MAX:
            connection.hold(HELD_TURN)
        self.add(connection)
