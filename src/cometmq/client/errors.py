"""Errors of the client other than network failures and broker replies.

    ClientError                code and advice are class attributes
      NoNameServer               10004  no name server is known, or none answered
        AddressServiceFailed       10004  the HTTP address service gave no usable answer
      NoRoute                    10005  no name server knows the topic, or no queue of it can be used
        BrokerNotKnown             10003  no route names the broker
      RequestTimedOut            10006  a request was sent, but no reply arrived in time
      ReplyImpossible            10007  a message that is not a request cannot be replied to
      MessageNotFound            208    no broker has a message with the id
    UnreadableBody             the body of a message cannot be decompressed
    GroupInUse (UsageError)    the group is registered with the same client id
    ClientClosed (UsageError)  used before it was started or after it was closed

The codes are those of RocketMQ's client; ``client_code`` knows them for network errors (10001, 10002) too.
"""

from __future__ import annotations

from typing import ClassVar

from cometmq.base.errors import CallTimedOut, CometError, RemotingError, UsageError


class ClientError(CometError):
    """The client could not do what was asked. Its text ends with what to do about it."""

    code: ClassVar[int]
    advice: ClassVar[str]

    def __str__(self) -> str:
        return f"{super().__str__()}; {self.advice}"


class NoNameServer(ClientError):
    """No name server is known, or none of those known answered."""

    code = 10004
    advice = "check the addresses (name_servers, NAMESRV_ADDR) and that a name server runs there"
    retryable = True


class AddressServiceFailed(NoNameServer):
    """The HTTP address service, which knows the name servers, gave no usable answer."""

    advice = "check rocketmq.namesrv.domain, or give name_servers"


class NoRoute(ClientError):
    """No name server knows a broker with a usable queue for the topic."""

    code = 10005
    advice = "create the topic, or check its spelling and permission"
    retryable = True
    route_is_stale = True


class BrokerNotKnown(NoRoute):
    """No route names the broker: it is down, or it no longer serves the topic."""

    code = 10003
    advice = "start the broker, or choose among the queues that the topic has now"


class RequestTimedOut(ClientError):
    """The request was sent, but no reply arrived in time."""

    code = 10006
    advice = "see whether a consumer answers such requests, or give it more time"


class ReplyImpossible(ClientError, UsageError):
    """The message is not a request: it does not say where to send a reply."""

    code = 10007
    advice = "reply only to what Producer.request sent"


class MessageNotFound(ClientError):
    """No broker has a message with the id."""

    code = 208
    advice = "check the id and the topic; or it is older than brokers keep messages"


class UnreadableBody(CometError):
    """The body of a message cannot be decompressed, so the listener was not called."""


class GroupInUse(UsageError):
    """Another producer or consumer of the group is registered with the same client id."""


class ClientClosed(UsageError):
    """A client was used before it was started or after it was closed."""


CONNECT_BROKER_CODE = 10001
ACCESS_BROKER_TIMEOUT_CODE = 10002


def client_code(error: CometError) -> int | None:
    """The code of RocketMQ's client for this failure, or None if it has none."""
    if isinstance(error, ClientError):
        return error.code
    if isinstance(error, CallTimedOut):
        return ACCESS_BROKER_TIMEOUT_CODE
    if isinstance(error, RemotingError):
        return CONNECT_BROKER_CODE
    return None
