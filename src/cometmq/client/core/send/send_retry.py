"""Whether a failed send is retried, and how often. No I/O.

| send                       | attempts           | tried again after                                               |
| -------------------------- | ------------------ | --------------------------------------------------------------- |
| waiting                    | retries + 1        | network errors, a missing route, ``RETRIED_CODES`` of a broker  |
| waiting, to a given queue  | 1                  |                                                                 |
| in the background          | background + 1     | network errors: once a broker has answered, its word counts     |
| ... to a given queue       | background + 1     | the same, at the same broker                                    |
| one-way                    | 1                  |                                                                 |

A broker that is too busy asks for back-off: a send that it refused goes to another broker at most, never back to it.

While a master is replaced, nobody stores anything for a moment. A failure that says so and for certain stored nothing
costs no attempt: the send is repeated after a pause, with a fresh route, until its time is over. It needs no other
queue, so sends to a given queue are repeated, too.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Final

from cometmq.base.errors import CallTimedOut, CometError, ConnectFailed, RemotingError
from cometmq.client.errors import ClientError, NoRoute
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.reply_errors import BrokerReplyError

RETRIED_CODES: Final = frozenset(
    {
        int(ResponseCode.TOPIC_NOT_EXIST),
        int(ResponseCode.SERVICE_NOT_AVAILABLE),
        int(ResponseCode.SYSTEM_ERROR),
        int(ResponseCode.NO_PERMISSION),
        int(ResponseCode.NO_BUYER_ID),
        int(ResponseCode.NOT_IN_CURRENT_UNIT),
    }
)
"""The codes that 4.9 retries. 5.x adds SYSTEM_BUSY (2) and GO_AWAY (1500)."""

BUSY_CODES: Final = frozenset({int(ResponseCode.SYSTEM_BUSY), int(ResponseCode.FLOW_CONTROL)})
"""Flow control."""


FIRST_PAUSE_SECONDS: Final = 0.02
PAUSE_SECONDS_MAX: Final = 0.25
"""Between two looks for a new master. A second after it is known, every sender has found it."""


class SendMode(Enum):
    WAITING = "waiting"
    BACKGROUND = "background"
    ONEWAY = "one-way"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRules:
    retries: int = 2
    background_retries: int = 2
    codes: Collection[int] = RETRIED_CODES

    def attempts(self, mode: SendMode, *, is_queue_given: bool) -> int:
        if mode is SendMode.WAITING:
            return 1 if is_queue_given else 1 + self.retries
        return 1 + self.background_retries if mode is SendMode.BACKGROUND else 1

    def is_retried(self, error: CometError, mode: SendMode, *, has_other_broker: bool) -> bool:
        """Whether an attempt that ended with ``error`` may be followed by another one.

        Args:
            has_other_broker: the next attempt can go to a broker that did not just fail.
        """
        if isinstance(error, RemotingError):
            return mode is not SendMode.ONEWAY
        if mode is not SendMode.WAITING:
            return False
        if isinstance(error, BrokerReplyError):
            if error.code in BUSY_CODES and not has_other_broker:
                return False
            return error.code in self.codes
        return isinstance(error, ClientError) and error.retryable

    def is_waited_out(self, error: CometError, mode: SendMode) -> bool:
        """Whether nothing was stored because there is no master, and the next one may be about to come."""
        retries = self.retries if mode is SendMode.WAITING else self.background_retries
        if mode is SendMode.ONEWAY or not retries:
            return False
        if isinstance(error, CallTimedOut):
            return not error.sent
        if isinstance(error, BrokerReplyError):
            return error.code == ResponseCode.SERVICE_NOT_AVAILABLE
        return isinstance(error, ConnectFailed | NoRoute)
