"""Refusals of the API: a code, a text, what to do, and the HTTP status that goes with them."""

from __future__ import annotations

from cometmq.admin.errors import NoSuchName, PartialFailure
from cometmq.base.errors import CallTimedOut, CometError, RemotingError, UsageError
from cometmq.client.errors import MessageNotFound, NoNameServer, NoRoute
from cometmq.protocol.reply_errors import BrokerReplyError, NoPermission, SystemBusy

TEXT_CHARS_MAX = 2000


class Problem(CometError):
    """A request that is not answered. ``retry_after`` is in seconds."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str = "",
        field: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.field = field
        self.retry_after = retry_after


def bad_request(message: str, *, field: str | None = None, hint: str = "") -> Problem:
    return Problem(400, "bad_request", message, field=field, hint=hint)


def not_found(kind: str, name: str, hint: str = "") -> Problem:
    return Problem(404, f"no_such_{kind}", f"there is no {kind} {name!r}", hint=hint)


def problem_of(error: CometError) -> Problem:
    """What an error of the library below means to a caller."""
    if isinstance(error, Problem):
        return error
    text = str(error)[:TEXT_CHARS_MAX]
    match error:
        case MessageNotFound():
            return Problem(404, "no_such_message", text)
        case NoRoute():
            return Problem(404, "no_route", text)
        case NoSuchName():
            return Problem(404, "no_such_name", text)
        case UsageError():
            return bad_request(text)
        case NoNameServer():
            return Problem(503, "no_name_server", text)
        case CallTimedOut() | RemotingError() | PartialFailure():
            return Problem(
                503, "server_silent", text, hint="what others know is still shown; try again later"
            )
        case NoPermission():
            return Problem(403, "refused_by_server", text)
        case SystemBusy():
            return Problem(503, "server_busy", text)
        case BrokerReplyError():
            return Problem(409, "refused_by_server", text)
        case _:
            return Problem(502, "failed", text)
