"""Maps request codes to handlers, and turns whatever a handler does into the reply.

Before this on a message's way: ``turn``; the handlers are the processors of broker, name server and client.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Container, Iterable, Sequence
from time import monotonic
from typing import Any, Final, cast

from cometmq.base.errors import LocalProtocolError, ProtocolError
from cometmq.native.cut_pull import CutOnePull, CutPull
from cometmq.native.send_run import RUN, CutRun, SendRun, starts_of
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.frame import Cut, decode_bytes
from cometmq.protocol.header_json import decode_header
from cometmq.protocol.refusal import Refused
from cometmq.remoting.bounds.reached import MALFORMED, Reached
from cometmq.remoting.connection import REASON_CHARS_MAX, Connection
from cometmq.remoting.times.request_times import UNKNOWN, RequestTimes, Wait, answer_name

logger = logging.getLogger("cometmq.remoting")

# An error may quote what the peer sent, which may be long.
REMARK_CHARS_MAX: Final = 1000

Handler = Callable[[Connection, Command], Command | bytes | Awaitable[Command | None] | None]
"""Returns the reply, as a command or as its frame; None to answer later with ``connection.send``, or never; or an
awaitable of a reply or None."""

Guard = Callable[[Connection, Command], Command | Awaitable[Command | None] | None]
"""Looks at a request before its handler does. None lets it pass; else it is answered as if by a handler."""

TakeRun = Callable[[Connection, SendRun, int, int], None]
"""Handles the requests of a run from one message to another, as a handler would each of them."""

TakePull = Callable[[Connection, CutPull], bool]
"""Answers a pull that was cut. False: that is for the handler of its code, and nothing has been done."""

IsIdle = Callable[[], bool]
"""Whether a guard lets everything pass at present."""

Vouch = Callable[[Connection, SendRun, int, int], int]
"""Where the requests of a run end, between two messages, that a guard lets pass for certain, from the first one on."""

Finish = Callable[[], None]
"""Does the work of the gathered requests of one kind, and answers them."""

AnswerError = Callable[[Connection, Command, Exception], None]
"""``Dispatcher.answer_error``, for those who finish gathered requests."""


_SEES_ALL: Final[tuple[IsIdle, Vouch | None]] = (lambda: False), None


class Dispatcher:
    """The handlers of one server or client. May serve several ports."""

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self.kinds: dict[int, Finish] = {}
        """What finishes the requests of a code that is gathered; see ``gather``."""
        self.guards: list[Guard] = []
        self._spared: dict[Guard, tuple[IsIdle, Vouch | None]] = {}
        self.cut: Cut | None = None
        """What cuts runs of sends, and pulls, out of the stream."""
        self._take_run: TakeRun | None = None
        self._take_pull: TakePull | None = None
        self.everyday: Container[int] = frozenset()
        """Codes whose requests are refused every day: a topic not found, an offset not known. Refusals of all others
        are logged."""
        self.reached = Reached()
        """Counts refusals because of a bound."""
        self.times = RequestTimes()
        """How long requests take."""

    @property
    def codes(self) -> frozenset[int]:
        """The request codes that have a handler."""
        return frozenset(self._handlers)

    def add(self, code: int, handler: Handler) -> None:
        """Raises AssertionError if the code is taken: two owners of one code are a mistake in the wiring."""
        assert code not in self._handlers, f"request code {code} has a handler already"
        self._handlers[int(code)] = handler

    def wrap(self, code: int, wrapped: Callable[[Handler], Handler]) -> None:
        """Replace the handler of a code, if there is one, by what ``wrapped`` makes of it."""
        if (handler := self._handlers.get(code)) is not None:
            self._handlers[int(code)] = wrapped(handler)

    def gather(self, codes: Iterable[int], finish: Finish) -> None:
        """Make the requests with these codes one kind of work, done together in each turn of the loop.

        Their handlers only prepare and return None, or refuse as others do. ``finish`` does the work of all requests
        that were prepared since its last call, and answers each, with ``connection.add_frame`` or ``answer_error``; it
        does not raise. ``remoting.turn`` says when it is called. There may be any number of kinds.
        """
        for code in codes:
            assert code not in self.kinds, f"request code {code} is gathered already"
            self.kinds[int(code)] = finish

    def stand(self, guard: Guard, is_idle: IsIdle, vouch: Vouch | None = None) -> None:
        """Add a guard that need not see every request of a run: none while it is idle, nor those it vouches for."""
        self.guards.append(guard)
        self._spared[guard] = is_idle, vouch

    def take_runs(self, cut_run: CutRun, take_run: TakeRun) -> None:
        """Have runs of sends cut out of what is received, and handled by ``take_run``."""
        assert self._take_run is None, "runs have a handler already"
        self._take_run = take_run
        self.cut = first_of(self.cut, cut_run)

    def take_pulls(self, cut_pull: CutOnePull, take_pull: TakePull) -> None:
        """Have pulls cut out of what is received, and handled by ``take_pull``."""
        assert self._take_pull is None, "pulls have a handler already"
        self._take_pull = take_pull
        self.cut = first_of(self.cut, cut_pull)

    def dispatch_cut(self, connection: Connection, request: Any) -> None:
        """Handle a ``SendRun`` or a ``CutPull``; never raises."""
        if request.code == RUN:
            self.dispatch_run(connection, request)
            return
        pull: CutPull = request
        assert self._take_pull is not None, pull
        try:
            if self._are_idle() and self._take_pull(connection, pull):
                return
        except Exception as error:  # noqa: BLE001 - as in dispatch
            self.answer_error(connection, decode_header(pull.header(), b""), error)
            return
        self.dispatch(connection, decode_header(pull.header(), b""))

    def dispatch_run(self, connection: Connection, run: SendRun) -> None:
        """Handle all sends of a run; never raises."""
        start = at = 0
        stop = len(run)
        vouching = self._vouching()
        while at < stop:
            if vouching is not None:
                end = stop
                for vouch in vouching:
                    end = vouch(connection, run, at, end)
                at = end
                if at == stop:
                    break
            if self._passes(connection, run, at):
                at = run.after(at)
            else:
                self._take(connection, run, start, at)
                start = at = run.after(at)
                # Somebody who wants to be refused must not make guards look at the rest again and again.
                vouching = None
        self._take(connection, run, start, stop)

    def _vouching(self) -> list[Vouch] | None:
        """What all guards vouch with that are not idle; None if one of them wants to see each request."""
        found = []
        spared = self._spared
        for guard in self.guards:
            is_idle, vouch = spared.get(guard, _SEES_ALL)
            if is_idle():
                continue
            if vouch is None:
                return None
            found.append(vouch)
        return found

    def _passes(self, connection: Connection, run: SendRun, at: int) -> bool:
        """Whether the guards let a request of a run pass; if not, it is answered."""
        passed: list[Command] = []
        self.dispatch(
            connection, decode_bytes(run.frame(at)), lambda _, command: passed.append(command)
        )
        return bool(passed)

    def _take(self, connection: Connection, run: SendRun, start: int, stop: int) -> None:
        if start == stop:
            return
        assert self._take_run is not None, run
        try:
            self._take_run(connection, run, start, stop)
        except Exception as error:  # noqa: BLE001 - as in dispatch
            for at in starts_of(run):
                if start <= at < stop:
                    self.answer_error(connection, decode_bytes(run.frame(at)), error)

    def _are_idle(self) -> bool:
        return self._vouching() == []

    def dispatch_admitted(self, connection: Connection, command: Command) -> None:
        """Handle a request of a run that the guards have let pass."""
        self.dispatch(connection, command, guards=())

    def dispatch(
        self,
        connection: Connection,
        command: Command,
        handler: Handler | None = None,
        guards: Sequence[Guard] | None = None,
    ) -> None:
        """Handle one request; never raises. A one-way request is never answered.

        Args:
            handler, guards: to take the place of the usual ones.
        """
        try:
            result: Command | bytes | Awaitable[Command | None] | None
            if handler is None:
                handler = self._handlers.get(command.code)
            if handler is None:
                result = self._unknown(connection, command)
            else:
                for guard in self.guards if guards is None else guards:
                    result = guard(connection, command)
                    if result is not None:
                        break
                else:
                    result = handler(connection, command)
            if result is None:
                return
            if type(result) is bytes:
                if not command.flag & FLAG_ONEWAY:
                    connection.send_frame(result)
                if self.times.is_on:
                    self.times.answered(command.code, 0)
                return
            if type(result) is Command:
                if not command.flag & FLAG_ONEWAY:
                    connection.send(result)
                if self.times.is_on:
                    self.times.answered(command.code if handler else UNKNOWN, result.code)
                return
        except Exception as error:  # noqa: BLE001 - the border where any error becomes a reply
            self.answer_error(connection, command, error)
            return
        pending = cast("Awaitable[Command | None]", result)
        connection.run_handler(self._finish(connection, command, pending), len(command.body))

    async def _finish(
        self, connection: Connection, command: Command, pending: Awaitable[Command | None]
    ) -> None:
        started = monotonic()
        try:
            reply = await pending
            if reply is not None and not command.is_oneway:
                connection.send(reply)
        except Exception as error:  # noqa: BLE001 - as in dispatch
            reply = self._send_error(connection, command, error)
        if reply is not None:
            self.times.took(
                command.code,
                reply.code,
                monotonic() - started,
                Wait.HANDLER,
                peer=connection.peer,
            )

    def _unknown(self, connection: Connection, command: Command) -> Command:
        # If a server sends a client what the client does not know, the client's owner cannot do anything about it.
        level = logging.WARNING if connection.is_accepted else logging.DEBUG
        logger.log(level, "unknown request peer=%s code=%d", connection.peer, command.code)
        # The leading blank is RocketMQ's; clients show the text as it is.
        return command.reply(
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
            f" request type {command.code} not supported",
        )

    def answer_error(self, connection: Connection, command: Command, error: Exception) -> None:
        """Tell the peer what went wrong, unless the request was one-way."""
        reply = self._send_error(connection, command, error)
        if self.times.is_on:
            self.times.answered(command.code, reply.code)

    def _send_error(self, connection: Connection, command: Command, error: Exception) -> Command:
        reply = self._error_reply(connection, command, error)
        if command.is_oneway:
            return reply
        try:
            connection.send(reply)
        except LocalProtocolError as unsendable:
            logger.error(
                "reply lost peer=%s code=%d reason=%s", connection.peer, command.code, unsendable
            )
        return reply

    def _error_reply(self, connection: Connection, command: Command, error: Exception) -> Command:
        if isinstance(error, Refused):
            if error.bound:
                self.reached.count(error.bound)
            self.times.refuse(command.code, error.bound or answer_name(error.code))
            self._log_refusal(connection, command, error.remark)
            return command.reply(error.code, error.remark, ext=error.ext)
        if isinstance(error, ProtocolError):
            self.reached.count(MALFORMED)
            self._log_refusal(connection, command, str(error))
            return command.reply(ResponseCode.SYSTEM_ERROR, str(error)[:REMARK_CHARS_MAX])
        logger.error(
            "handler failed peer=%s code=%d", connection.peer, command.code, exc_info=error
        )
        remark = f"{type(error).__name__}: {error}"
        return command.reply(ResponseCode.SYSTEM_ERROR, remark[:REMARK_CHARS_MAX])

    def _log_refusal(self, connection: Connection, command: Command, reason: str) -> None:
        level = logging.DEBUG if command.code in self.everyday else logging.WARNING
        logger.log(
            level,
            "request refused peer=%s code=%d reason=%s",
            connection.peer,
            command.code,
            reason[:REASON_CHARS_MAX],
        )


def first_of(first: Cut | None, other: Cut) -> Cut:
    """What the first of two cuts, or else the other."""
    if first is None:
        return other
    return lambda data, at, frame_bytes_max: (
        first(data, at, frame_bytes_max) or other(data, at, frame_bytes_max)
    )
