"""When a held queue is pulled next, and from where. No I/O.

pull -> answered -> pull ...
otherwise: hold at a limit, pause after an error, without a valid lock or by setting, wait while suspended
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cometmq.client.core.consume.flow_limits import FlowLimits
from cometmq.client.core.consume.member.held_queue import HeldQueue
from cometmq.client.core.consume.member.rules import MemberRules

LIMIT_SECONDS: Final = 0.05
"""How long a full queue waits before it looks again; sooner when messages are finished."""
FLOW_CONTROL_SECONDS: Final = 0.02
LOGGED_PAUSES: Final = 1000
"""One in this many pauses at a limit is logged."""
FRESH_SECONDS: Final = 1.0
"""A pull sent longer ago than this has been looked at by its broker."""
STUCK_SECONDS: Final = 120.0
"""A queue that has not even tried to pull for this long is restarted."""


@dataclass(frozen=True, slots=True)
class Pull:
    """Pull from ``offset``, and have the broker store ``position`` along with it if there is one."""

    offset: int
    position: int | None


@dataclass(frozen=True, slots=True)
class Hold:
    """The queue is full. Ask again after ``seconds``, or when ``ResumePull`` comes."""

    seconds: float
    reason: str
    is_to_log: bool


@dataclass(frozen=True, slots=True)
class Pause:
    """Ask again after ``seconds``."""

    seconds: float


class Suspended:
    """Ask again when the user resumes."""


class End:
    """Do not ask again."""


PullStep = Pull | Hold | Pause | Suspended | End

SUSPENDED: Final = Suspended()
END: Final = End()


class Pulling:
    """One pull at a time: after a ``Pull`` comes ``ended``, then the next question."""

    __slots__ = ("_held", "_not_before", "_pauses", "_rules", "_sent_at", "_sent_position")

    def __init__(self, held: HeldQueue, rules: MemberRules) -> None:
        self._held = held
        self._rules = rules
        self._pauses = 0
        self._not_before = 0.0
        self._sent_at = 0.0
        self._sent_position: int | None = None

    def next(
        self, now: float, *, limits: FlowLimits, is_suspended: bool, is_subscribed: bool
    ) -> PullStep:
        held = self._held
        held.is_full = False
        if held.is_dropped:
            return END
        held.last_pull = now
        if is_suspended:
            return SUSPENDED
        if now < self._not_before:
            return Pause(self._not_before - now)
        process = held.process
        if (reason := limits.exceeded(process)) is not None:
            held.is_full = True
            self._pauses += 1
            return Hold(LIMIT_SECONDS, reason, (self._pauses - 1) % LOGGED_PAUSES == 0)
        if not held.is_locked(now):
            return Pause(self._rules.pull_error_seconds)
        if not is_subscribed:
            return END
        position = process.commit_offset
        # As Java's client: a position of 0 says nothing and is not sent.
        self._sent_position = position if position > 0 and not self._rules.is_broadcast else None
        self._sent_at = now
        return Pull(process.next_offset, self._sent_position)

    def ended(self, now: float) -> None:
        """The pull was answered."""
        self._sent_position = None
        if self._rules.pull_interval_seconds:
            self._not_before = now + self._rules.pull_interval_seconds

    def failed(self, now: float, *, by_flow_control: bool) -> None:
        self._sent_position = None
        self._not_before = now + (
            FLOW_CONTROL_SECONDS if by_flow_control else self._rules.pull_error_seconds
        )

    def may_set_back(self, position: int, now: float) -> bool:
        """Whether a pull is under way with another position, which a slow broker might store after this one."""
        is_outdated = self._sent_position not in (None, position)
        return is_outdated and now - self._sent_at < FRESH_SECONDS

    def is_stuck(self, now: float) -> bool:
        return self._held.last_pull < now - STUCK_SECONDS
