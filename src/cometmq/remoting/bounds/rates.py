"""Requests and bytes per second of one caller: an account, or an address where nobody is known.

A caller has a bucket of tokens for a second. It is filled up only when it is empty, so a request within the limits
costs a look-up and two subtractions. Without limits nothing stands before the handlers at all.

Bytes are those of the bodies that a caller sends. A body may be larger than the bucket: it is taken on credit, and what
follows waits until that is paid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from cometmq.model.address import split_address
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command
from cometmq.remoting.bounds.crowd import caller_of
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.remoting_config import RemotingServerConfig

CALLERS_MAX: Final = 65_536
"""Callers that are remembered. One that was forgotten starts again with a full bucket, which is a second's worth."""


class _Bucket:
    """Args: account: "" for an address."""

    __slots__ = ("account", "at", "body_bytes", "caller", "requests")

    def __init__(
        self, caller: str, account: str, at: float, requests: float, body_bytes: float
    ) -> None:
        self.caller = caller
        self.account = account
        self.at = at
        self.requests = requests
        self.body_bytes = body_bytes


class RateLimits:
    """Stands before the handlers of a server's ports as long as there is a limit.

    Args:
        clock: monotonic seconds.
    """

    def __init__(
        self, config: RemotingServerConfig, reached: Reached, clock: Callable[[], float]
    ) -> None:
        self._reached = reached
        self._clock = clock
        self._dispatchers: list[Dispatcher] = []
        self._of_connection: dict[Connection, _Bucket] = {}
        self._of_caller: dict[str, _Bucket] = {}
        self.account_of: Callable[[Connection], str] | None = None
        """Whose request came last over a connection; "" if nobody is known."""
        self.apply(config)

    @property
    def is_limited(self) -> bool:
        return self._requests < math.inf or self._body_bytes < math.inf

    def watch(self, dispatcher: Dispatcher) -> None:
        """Stand before this dispatcher's handlers and its other guards."""
        self._dispatchers.append(dispatcher)
        self._stand(dispatcher)

    def apply(self, config: RemotingServerConfig) -> None:
        """Settings changed."""
        self._requests = float(config.requests_per_second_max or math.inf)
        self._body_bytes = float(config.bytes_per_second_max or math.inf)
        self._of_connection.clear()
        self._of_caller.clear()
        for dispatcher in self._dispatchers:
            self._stand(dispatcher)

    def guard(self, connection: Connection, command: Command) -> Command | None:
        """The refusal of a request, or None to let it pass."""
        account = "" if self.account_of is None else self.account_of(connection)
        bucket = self._of_connection.get(connection)
        if bucket is None or bucket.account != account:
            bucket = self._bucket(connection, account)
        if bucket.requests < 1 or bucket.body_bytes <= 0:
            refusal = self._fill(bucket)
            if refusal is not None:
                return command.reply(ResponseCode.SYSTEM_BUSY, refusal)
        bucket.requests -= 1
        bucket.body_bytes -= len(command.body)
        return None

    def forget(self, connection: Connection) -> None:
        """It has gone. Its caller is remembered: a new connection is no new bucket."""
        self._of_connection.pop(connection, None)

    def _stand(self, dispatcher: Dispatcher) -> None:
        if self.guard in dispatcher.guards:
            dispatcher.guards.remove(self.guard)
        if self.is_limited:
            # First: also what the others refuse costs something.
            dispatcher.guards.insert(0, self.guard)

    def _bucket(self, connection: Connection, account: str) -> _Bucket:
        host, _ = split_address(connection.peer)
        caller = f"account {account}" if account else f"address {caller_of(host)}"
        bucket = self._of_caller.get(caller)
        if bucket is None:
            if len(self._of_caller) >= CALLERS_MAX:
                self._make_room()
            bucket = _Bucket(caller, account, self._clock(), self._requests, self._body_bytes)
            self._of_caller[caller] = bucket
        # Of one that is closed nobody would tell that it can be forgotten.
        if not connection.is_closed:
            self._of_connection[connection] = bucket
        return bucket

    def _fill(self, bucket: _Bucket) -> str | None:
        """Add what has come in since it was last filled; why that is not enough, or None."""
        now = self._clock()
        seconds = max(now - bucket.at, 0.0)
        bucket.at = now
        if self._requests < math.inf:
            bucket.requests = min(self._requests, bucket.requests + seconds * self._requests)
        if self._body_bytes < math.inf:
            bucket.body_bytes = min(
                self._body_bytes, bucket.body_bytes + seconds * self._body_bytes
            )
        if bucket.requests < 1:
            return self._refusal(
                bucket, f"{self._requests:.0f} requests", "clientRequestsPerSecondMax"
            )
        if bucket.body_bytes <= 0:
            return self._refusal(bucket, f"{self._body_bytes:.0f} bytes", "clientBytesPerSecondMax")
        return None

    def _refusal(self, bucket: _Bucket, most: str, setting: str) -> str:
        self._reached.count(setting)
        return (
            "[RATE_LIMIT]system busy, start flow control for a while, "
            f"{bucket.caller} sends more than {most} a second ({setting})"
        )

    def _make_room(self) -> None:
        """Forget those that have not used up their bucket for longest; a quarter, so that this is rare."""
        by_age = sorted(self._of_caller.values(), key=lambda bucket: bucket.at)
        self._of_caller = {bucket.caller: bucket for bucket in by_age[CALLERS_MAX // 4 :]}

    def __repr__(self) -> str:
        return f"<RateLimits {self._requests:g} requests {self._body_bytes:g} bytes a second>"
