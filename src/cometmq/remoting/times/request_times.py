"""How long requests took, by request code and code of the answer, and which were slow.

Counting costs next to nothing: what is answered within one turn of the loop is counted by code, and the turn's length,
looked at once, is what all of it took. That is also what a client waits for. Requests that are answered later (for
messages, disk, slaves, another server) are timed one by one, or together when they were held together.

Nothing is counted until somebody wants figures (``is_on``); slow turns are told in any case. Owned by the event loop.
"""

from __future__ import annotations

import logging
from collections import Counter
from enum import Enum
from time import monotonic
from typing import Final, NamedTuple

from cometmq.protocol.codes import RequestCode, ResponseCode

logger = logging.getLogger("cometmq.remoting")

EDGES_SECONDS: Final = (0.001, 0.003, 0.005, 0.007, 0.01, 0.1, 1.0, 2.0, 3.0)
"""RocketMQ's buckets."""
_FIRST_EDGE: Final = EDGES_SECONDS[0]
UNKNOWN: Final = -1
"""Stands for codes without a handler: anybody may send any number."""
_NEVER: Final = float("inf")


class Wait(Enum):
    """What a request that was not answered at once has waited for."""

    HANDLER = "its handler"
    DURABLE = "disk or slaves"
    MESSAGE = "a message"


class Outcome(NamedTuple):
    code: int
    answer: int
    is_long_polling: bool = False


class Times:
    """Counts by bucket; one more has what is longer."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(EDGES_SECONDS) + 1)
        self.seconds = 0.0


class RequestTimes:
    """For all ports of a server."""

    def __init__(self) -> None:
        self.is_on = False
        """Whether somebody wants to know how long requests take."""
        self.slow_seconds = _NEVER
        """From when on a request is slow."""
        self.slow_count = 0
        self._table: dict[tuple[int, int, bool], Times] = {}
        self._of_turns: dict[tuple[int, int], Times] = {}
        """Those of ``_table`` that turns have answered, so that a turn need not ask twice."""
        self.refused: Counter[tuple[int, str]] = Counter()
        """Refusals by request code and reason: a bound, or the name of the answer's code."""
        self._turn: dict[tuple[int, int], int] = {}

    def slow_from(self, milliseconds: int) -> None:
        """Log requests that take as long; 0 for none."""
        self.slow_seconds = milliseconds / 1000 if milliseconds else _NEVER

    def answered(self, code: int, answer: int, count: int = 1) -> None:
        """Requests were answered in this turn. To be called if ``is_on``."""
        key = (code, answer)
        turn = self._turn
        turn[key] = turn.get(key, 0) + count

    def refuse(self, code: int, reason: str) -> None:
        """Count a refusal. Few reasons exist, since only code names them."""
        self.refused[code, reason] += 1

    def turn_over(self, started: float, handled: float) -> None:
        """The turn that began then is over, and its answers are written.

        Args:
            handled: when the handlers had run; what was gathered was done after that.
        """
        turn = self._turn
        now = monotonic()
        seconds = now - started
        if seconds >= self.slow_seconds:
            self._tell_turn(turn, handled - started, now - handled)
        if turn:
            bucket = 0 if seconds <= _FIRST_EDGE else _bucket(seconds)
            for key, count in turn.items():
                times = self._of_turns.get(key)
                if times is None:
                    times = self._of_turns[key] = self._times(*key, False)
                times.counts[bucket] += count
                times.seconds += seconds * count
            turn.clear()

    def took(
        self,
        code: int,
        answer: int,
        seconds: float,
        wait: Wait,
        *,
        count: int = 1,
        peer: str = "",
    ) -> None:
        """Requests were answered later."""
        is_polling = wait is Wait.MESSAGE
        if self.is_on:
            times = self._times(code, answer, is_polling)
            times.counts[_bucket(seconds)] += count
            times.seconds += seconds * count
        if seconds >= self.slow_seconds and not is_polling:
            self.slow_count += count
            logger.warning(
                "slow request peer=%s code=%s answer=%d took_ms=%d count=%d waited_for=%s",
                peer or "several",
                request_name(code),
                answer,
                seconds * 1000,
                count,
                wait.value,
            )

    @property
    def table(self) -> dict[Outcome, Times]:
        """What was counted so far."""
        return {Outcome(*key): times for key, times in self._table.items()}

    def _times(self, code: int, answer: int, is_polling: bool) -> Times:
        key = (code, answer, is_polling)
        times = self._table.get(key)
        if times is None:
            times = self._table[key] = Times()
        return times

    def _tell_turn(
        self, turn: dict[tuple[int, int], int], handling: float, finishing: float
    ) -> None:
        """A turn is never that long because it has many requests: something in it has stopped the loop."""
        self.slow_count += max(sum(turn.values()), 1)
        codes = ",".join(f"{request_name(code)}:{count}" for (code, _), count in turn.items())
        logger.warning(
            "slow requests took_ms=%d handling_ms=%d storing_ms=%d codes=%s",
            (handling + finishing) * 1000,
            handling * 1000,
            finishing * 1000,
            codes or "not counted without metricsExporterType",
        )

    def __repr__(self) -> str:
        return f"<RequestTimes {'on' if self.is_on else 'off'} slow={self.slow_count}>"


def request_name(code: int) -> str:
    """As RocketMQ's metrics name a request."""
    try:
        return RequestCode(code).name.lower()
    except ValueError:
        return "unknown" if code == UNKNOWN else str(code)


def answer_name(code: int) -> str:
    """As RocketMQ's metrics name the code of an answer."""
    try:
        return ResponseCode(code).name.lower()
    except ValueError:
        return str(code)


def _bucket(seconds: float) -> int:
    for bucket, edge in enumerate(EDGES_SECONDS):
        if seconds <= edge:
            return bucket
    return len(EDGES_SECONDS)
