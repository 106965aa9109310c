"""The tree of everything CometMQ raises.

    CometError
      UsageError                 the caller's mistake, found before any I/O
        ConfigError                a configuration file or value that cannot be used
      ProtocolError              somebody broke the rules of the protocol
        LocalProtocolError         we did
        RemoteProtocolError        the peer did
      RemotingError              the wire itself failed
        ConnectFailed              nobody answered at the address
        ConnectionLost             the connection was lost during the call
        CallTimedOut               no answer in time
        TooManyInFlight            the limit on unanswered calls is reached
      StoreError                 a problem with the disk or what is on it
        StoreClosed                the store no longer accepts requests
        NotMaster                  the store of a slave takes its master's log alone
        DiskFull                   no space for the data to write
        RecordTooLarge             a record larger than the configured limit
        CorruptFile                a file in the store directory is damaged or foreign

Replies that carry an error code have their own family in ``cometmq.protocol.reply_errors``.
Two class attributes answer the questions of a retry loop: may the same call be tried again, and is the route stale?
"""

from __future__ import annotations


class CometError(Exception):
    """Base class of all errors of this package."""

    retryable = False
    route_is_stale = False


class UsageError(CometError, ValueError):
    """The caller asked for something that can never work; nothing was sent or written."""

    bound = ""
    """The setting of the bound that it exceeds, if that is the mistake."""


class ConfigError(UsageError):
    """A configuration file or value that cannot be used; the message says what to change."""


class ProtocolError(CometError):
    """A frame, header or body that breaks the rules of the protocol."""


class LocalProtocolError(ProtocolError):
    """We were about to send something illegal."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something illegal; the connection can no longer be trusted."""


class RemotingError(CometError):
    """The network failed; the request may or may not have been carried out."""

    retryable = True
    route_is_stale = True


class ConnectFailed(RemotingError):
    """No connection could be made; the request was certainly not carried out."""


class ConnectionLost(RemotingError):
    """The connection was closed during the call."""


class CallTimedOut(RemotingError):
    """No reply arrived in time. ``sent`` tells whether the request left this process."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class TooManyInFlight(RemotingError):
    """The limit on unanswered calls is reached; nothing was sent."""

    route_is_stale = False


class StoreError(CometError):
    """The store could not do what was asked."""


class StoreClosed(StoreError):
    """The store is closed or closing."""


class NotMaster(StoreError):
    """The store of a slave: only its master's log is appended to it."""

    route_is_stale = True


class DiskFull(StoreError):
    """No space left for the data to write; nothing of it counts as stored."""

    retryable = True


class RecordTooLarge(StoreError):
    """A record above the configured limit."""


class CorruptFile(StoreError):
    """A file in the store directory is damaged or foreign. Nothing was overwritten."""

    def __init__(self, path: str, reason: str, advice: str) -> None:
        super().__init__(f"{path}: {reason}. {advice}")
        self.path = path
        self.reason = reason
        self.advice = advice


def one_line(error: Exception) -> str:
    """An error as a command shows it. One of the system reads ``/data: Permission denied``, without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
