"""Request code -> handler, and whatever a handler does -> reply.

Comes after ``connection`` on a message's way; the handlers are the processors of broker, name server and client.
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
"""Returns the reply, as a command or as its frame; or None, to answer later with ``connection.send`` or never; or an
awaitable of the reply or None."""

Guard = Callable[[Connection, Command], Command | None]
"""Looks at a request before its handler does; a command it returns is the answer, and the handler is not called."""


class Dispatcher:
    """The handlers of one server or client. May serve several ports."""

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self.guards: list[Guard] = []
        self.everyday: Container[int] = frozenset()
        """Codes of requests that are refused in a day's work: a topic not found, an offset not known. Of all others a
        refusal is logged."""
        self.in_spare_time: Callable[[], None] = _nothing
        """Called when everything is answered and nothing new has come; what it does keeps the next request waiting."""
        self._joining: frozenset[int] = frozenset()
        self._finish_joined: Callable[[], None] = _nothing
        self._is_unfinished = False

    def add(self, code: int, handler: Handler) -> None:
        """Raises AssertionError when the code is taken: two owners of one code are a mistake in the wiring."""
        assert code not in self._handlers, f"request code {code} has a handler already"
        self._handlers[int(code)] = handler

    def join(self, codes: Iterable[int], finish: Callable[[], None]) -> None:
        """Handlers of these codes only prepare: ``finish`` does the work of all requests since it was called last.

        It is called when a request of another kind comes, and when everything is handled that has arrived.
        """
        assert not self._joining, "one kind of requests is finished together, not two"
        self._joining = frozenset(map(int, codes))
        self._finish_joined = finish

    def finish(self) -> None:
        if self._is_unfinished:
            self._is_unfinished = False
            self._finish_joined()

    def dispatch(self, connection: Connection, command: Command) -> None:
        """Handle one request; never raises. A one-way request is never answered."""
        try:
            result: Command | bytes | Awaitable[Command | None] | None
            handler = self._handlers.get(command.code)
            if command.code in self._joining:
                self._is_unfinished = True
            elif self._is_unfinished:
                self.finish()
            if handler is None:
                result = self._unknown(connection, command)
            else:
                for guard in self.guards:
                    refusal = guard(connection, command)
                    if refusal is not None:
                        result = refusal
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
        # A server that asks a client for what it does not know is nothing that the client's owner could mend.
        level = logging.WARNING if connection.is_accepted else logging.DEBUG
        logger.log(level, "unknown request peer=%s code=%d", connection.peer, command.code)
        # The blank in front is RocketMQ's; clients show the text as it is.
        return command.reply(
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
            f" request type {command.code} not supported",
        )

    def answer_error(self, connection: Connection, command: Command, error: Exception) -> None:
        """Tell the peer what went wrong, unless it does not want to know."""
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
