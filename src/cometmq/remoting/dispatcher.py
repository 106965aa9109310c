"""Maps request codes to handlers, and turns whatever a handler does into the reply.

Before this on a message's way: ``turn``; the handlers are the processors of broker, name server and client.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Container, Iterable
from typing import Final, cast

from cometmq.base.errors import LocalProtocolError, ProtocolError
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import REASON_CHARS_MAX, Connection

logger = logging.getLogger("cometmq.remoting")

# An error may quote what the peer sent, which may be long.
REMARK_CHARS_MAX: Final = 1000

Handler = Callable[[Connection, Command], Command | bytes | Awaitable[Command | None] | None]
"""Returns the reply, as a command or as its frame; None to answer later with ``connection.send``, or never; or an
awaitable of a reply or None."""

Guard = Callable[[Connection, Command], Command | Awaitable[Command | None] | None]
"""Looks at a request before its handler does. None lets it pass; else it is answered as if by a handler."""

Finish = Callable[[], None]
"""Does the work of the gathered requests of one kind, and answers them."""

AnswerError = Callable[[Connection, Command, Exception], None]
"""``Dispatcher.answer_error``, for those who finish gathered requests."""


class Dispatcher:
    """The handlers of one server or client. May serve several ports."""

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self.kinds: dict[int, Finish] = {}
        """What finishes the requests of a code that is gathered; see ``gather``."""
        self.guards: list[Guard] = []
        self.everyday: Container[int] = frozenset()
        """Codes whose requests are refused every day: a topic not found, an offset not known. Refusals of all others
        are logged."""
        self.in_spare_time: Callable[[], None] = _nothing
        """Called when everything is answered and nothing new has come; requests that come meanwhile wait for it."""

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

    def dispatch(self, connection: Connection, command: Command) -> None:
        """Handle one request; never raises. A one-way request is never answered."""
        try:
            result: Command | bytes | Awaitable[Command | None] | None
            handler = self._handlers.get(command.code)
            if handler is None:
                result = self._unknown(connection, command)
            else:
                for guard in self.guards:
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
                return
            if type(result) is Command:
                if not command.flag & FLAG_ONEWAY:
                    connection.send(result)
                return
        except Exception as error:  # noqa: BLE001 - the border where any error becomes a reply
            self.answer_error(connection, command, error)
            return
        pending = cast("Awaitable[Command | None]", result)
        connection.run_handler(self._finish(connection, command, pending), len(command.body))

    async def _finish(
        self, connection: Connection, command: Command, pending: Awaitable[Command | None]
    ) -> None:
        try:
            reply = await pending
            if reply is not None and not command.is_oneway:
                connection.send(reply)
        except Exception as error:  # noqa: BLE001 - as in dispatch
            self.answer_error(connection, command, error)

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
        reply = self._error_reply(connection, command, error)
        if command.is_oneway:
            return
        try:
            connection.send(reply)
        except LocalProtocolError as unsendable:
            logger.error(
                "reply lost peer=%s code=%d reason=%s", connection.peer, command.code, unsendable
            )

    def _error_reply(self, connection: Connection, command: Command, error: Exception) -> Command:
        if isinstance(error, Refused):
            self._log_refusal(connection, command, error.remark)
            return command.reply(error.code, error.remark, ext=error.ext)
        if isinstance(error, ProtocolError):
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


def _nothing() -> None:
    return None
