"""Tells the audit log about requests that change something: after they were answered, or were refused at the door."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from cometmq.access.audit.audit_line import AUDITED, audit_line
from cometmq.access.audit.audit_log import AuditLog
from cometmq.base.log_rates import LineRates
from cometmq.base.ports import Clock
from cometmq.model.address import split_address
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.refusal import Refused
from cometmq.protocol.request_signature import ACCESS_KEY
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher, Handler

NameOf = Callable[[Connection, Command], str]


class Audit:
    """Args: log: must be started."""

    def __init__(self, log: AuditLog, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._rates = LineRates()
        self.name_of: NameOf = _nobody
        """Whose account a request carries; by default there are none."""

    def watch(self, dispatcher: Dispatcher) -> None:
        """After all handlers were added: hear how each request ends that changes something."""
        for code in AUDITED:
            dispatcher.wrap(code, self._watched)

    def refused(self, connection: Connection, command: Command, refusal: Refused) -> None:
        """The guard did not let a request pass; the name is what it claims.

        Anybody can have requests refused, and what was carried out must not be crowded out by that.
        """
        if command.code not in AUDITED:
            return
        host, _ = split_address(connection.peer)
        if not self._rates.admit("refused", host, self._clock.monotonic()):
            self._log.leave_out()
            return
        claimed = (command.ext or {}).get(ACCESS_KEY, "")
        self._add(connection, command, claimed, refusal.code, refusal.remark)

    def _watched(self, handler: Handler) -> Handler:
        def handle(
            connection: Connection, command: Command
        ) -> Command | bytes | Awaitable[Command | None] | None:
            # Before it is carried out: the request may remove the account that it comes from.
            account = self.name_of(connection, command)
            try:
                result = handler(connection, command)
            except Exception as error:
                self._failed(connection, command, account, error)
                raise
            if result is None or isinstance(result, bytes | Command):
                self._ended(connection, command, account, result)
                return result
            return self._awaited(connection, command, account, result)

        return handle

    async def _awaited(
        self,
        connection: Connection,
        command: Command,
        account: str,
        pending: Awaitable[Command | None],
    ) -> Command | None:
        try:
            reply = await pending
        except Exception as error:
            self._failed(connection, command, account, error)
            raise
        self._ended(connection, command, account, reply)
        return reply

    def _ended(self, connection: Connection, command: Command, account: str, reply: object) -> None:
        """A request without a reply yet is carried out, and waits for the disk or for slaves."""
        if isinstance(reply, Command) and reply.code != ResponseCode.SUCCESS:
            self._add(connection, command, account, reply.code, reply.remark or "")
        else:
            self._add(connection, command, account, ResponseCode.SUCCESS, None)

    def _failed(
        self, connection: Connection, command: Command, account: str, error: Exception
    ) -> None:
        if isinstance(error, Refused):
            self._add(connection, command, account, error.code, error.remark)
        else:
            self._add(connection, command, account, ResponseCode.SYSTEM_ERROR, type(error).__name__)

    def _add(
        self,
        connection: Connection,
        command: Command,
        account: str,
        result: int,
        reason: str | None,
    ) -> None:
        self._log.add(
            audit_line(
                command,
                account=account,
                peer=connection.peer,
                wall_ms=self._clock.wall_ms(),
                result=result,
                reason=reason,
            )
        )


def _nobody(connection: Connection, command: Command) -> str:
    return ""
