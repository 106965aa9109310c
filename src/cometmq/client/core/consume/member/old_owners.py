"""Waiting for members that may still have a queue that is now ours. No I/O.

Each one is polled with exponential back-off until it no longer lists the queue. One that cannot be asked is given a
moment, and nobody gets more than the whole time:

    asked -> lists it  -> pause -> asked ... -> time is up: passed over
          -> does not  -> done
          -> no answer -> a moment -> done
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

ASK_SECONDS: Final = 0.05
ASK_SECONDS_MAX: Final = 0.5
UNKNOWN_SECONDS: Final = 1.0
"""How long to wait for an owner that cannot be asked: enough for one that does as we do and is not busy."""


@dataclass(slots=True)
class _Owner:
    again_at: float | None = 0.0
    """When its pause ends; None while a question is under way."""
    delay: float = ASK_SECONDS
    is_silent: bool = False


class OldOwners:
    """Args:
    seconds: how long they are waited for at most.
    answer_seconds: how long an answer may take that is still under way then.
    """

    def __init__(
        self, owners: Iterable[str], now: float, *, seconds: float, answer_seconds: float
    ) -> None:
        self._owners = {name: _Owner(now) for name in owners}
        self._seconds = seconds
        self._deadline = now + seconds
        self._last_answer_at = self._deadline + answer_seconds

    @property
    def is_over(self) -> bool:
        return not self._owners

    def next_at(self) -> float:
        """When to look again, answers aside."""
        return min(map(self._due_at, self._owners.values()))

    def due(self, now: float) -> tuple[list[str], list[str]]:
        """Those to ask now, and those who have had their time and are waited for no longer."""
        ask: list[str] = []
        passed_over: list[str] = []
        for name, owner in list(self._owners.items()):
            if now < self._due_at(owner):
                continue
            if owner.is_silent:
                del self._owners[name]
            elif now >= self._deadline:
                del self._owners[name]
                passed_over.append(name)
            else:
                owner.again_at = None
                ask.append(name)
        return ask, passed_over

    def answered(self, name: str, now: float, *, has_queue: bool) -> None:
        owner = self._owners.get(name)
        if owner is None:
            return
        if not has_queue:
            del self._owners[name]
            return
        owner.again_at = now + owner.delay
        owner.delay = min(owner.delay * 2, ASK_SECONDS_MAX)

    def silent(self, name: str, now: float) -> None:
        owner = self._owners.get(name)
        if owner is not None:
            owner.is_silent = True
            owner.again_at = now + min(UNKNOWN_SECONDS, self._seconds)

    def _due_at(self, owner: _Owner) -> float:
        if owner.again_at is None:
            return self._last_answer_at
        return owner.again_at if owner.is_silent else min(owner.again_at, self._deadline)
