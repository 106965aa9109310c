"""What a slave asks its master for, in which order, and which failures are worth a line in the log.

RocketMQ's slaves ask in the same order. Masters of RocketMQ 4.9 do not know some of the requests, and those of both
series not the ones about sinks and accounts, which is normal.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cometmq.base.errors import CometError, RemotingError
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.reply_errors import RequestCodeNotSupported

PERIOD_SECONDS: Final = 3.0
"""From the end of a round to the next."""

_SECONDS_MAX: Final = 3.0
_LARGE_SECONDS_MAX: Final = 30.0


class Question(NamedTuple):
    code: RequestCode
    what: str
    seconds_max: float = _SECONDS_MAX
    is_new: bool = False
    """Whether only RocketMQ 5 knows it, or nobody but our own masters."""


TOPICS: Final = Question(RequestCode.GET_ALL_TOPIC_CONFIG, "topics", _LARGE_SECONDS_MAX)
OFFSETS: Final = Question(
    RequestCode.GET_ALL_CONSUMER_OFFSET, "consumer offsets", _LARGE_SECONDS_MAX
)
DELAYS: Final = Question(RequestCode.GET_ALL_DELAY_OFFSET, "delay offsets")
GROUPS: Final = Question(
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, "subscription groups", _LARGE_SECONDS_MAX
)
MODES: Final = Question(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, "request modes", is_new=True)
TIMER_METRICS: Final = Question(RequestCode.GET_TIMER_METRICS, "timer metrics", is_new=True)
TIMERS: Final = Question(RequestCode.GET_TIMER_CHECK_POINT, "timer checkpoint", is_new=True)
SINKS: Final = Question(RequestCode.GET_SINK_LANES, "lanes of sinks", is_new=True)
ACCOUNTS: Final = Question(RequestCode.GET_ACCOUNTS, "accounts", is_new=True)
LOG_END: Final = Question(RequestCode.GET_BROKER_RUNTIME_INFO, "end of the log")

ROUND: Final = (
    *(TOPICS, OFFSETS, DELAYS, GROUPS, MODES, TIMER_METRICS, TIMERS, LOG_END, SINKS),
    ACCOUNTS,
)


class SyncPlan:
    """What went wrong with the current master."""

    def __init__(self) -> None:
        self._causes: dict[RequestCode, str] = {}

    def begin(self) -> None:
        """With another master, or the same once more."""
        self._causes = {}

    def succeeded(self, question: Question) -> None:
        self._causes.pop(question.code, None)

    def failed(self, question: Question, error: CometError) -> str | None:
        """What to write into the log: nothing if it is normal, or if the last time it was the same."""
        if question.is_new and isinstance(error, RequestCodeNotSupported):
            return None
        cause = str(error)
        if self._causes.get(question.code) == cause:
            return None
        self._causes[question.code] = cause
        return cause

    def ends_round(self, error: CometError) -> bool:
        """Whether the other questions would meet the same."""
        return isinstance(error, RemotingError)
