"""What a listener says about the messages it was given, and what follows from it. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final

from cometmq.base.errors import UsageError

DEAD_LETTER_LEVEL: Final = -1
"""RocketMQ's delay level that means: no more retries."""

BROKER_CHOOSES: Final = 0
"""Delay level by which the broker chooses by the number of retries: 10 s, 30 s, 1 min ... 2 h."""


class _Kind(Enum):
    CONSUMED = "consumed"
    CONSUMED_THROUGH = "consumed_through"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a listener may return. Returning nothing is ``Outcome.consumed``; raising an exception is ``later()``."""

    kind: _Kind
    number: int = 0

    consumed: ClassVar[Outcome]
    """All of it is done."""

    @staticmethod
    def later(delay_level: int = BROKER_CHOOSES) -> Outcome:
        """Deliver again after the time of a delay level; 0 lets the broker choose, longer with every retry.

        An orderly listener's queue pauses instead, and the level is of no meaning.
        """
        if type(delay_level) is not int or delay_level < DEAD_LETTER_LEVEL:
            raise UsageError(
                f"delay level must be a number from {DEAD_LETTER_LEVEL} on, not {delay_level!r}"
            )
        return Outcome(_Kind.LATER, delay_level)

    @staticmethod
    def to_dlq() -> Outcome:
        """Do not deliver again: put it into the group's dead letter queue."""
        return Outcome(_Kind.LATER, DEAD_LETTER_LEVEL)

    @staticmethod
    def consumed_through(index: int) -> Outcome:
        """Of a batch, the messages up to and with this index are done, the others are to be delivered again."""
        if type(index) is not int or index < -1:
            raise UsageError(f"index must be a number from -1 (none) on, not {index!r}")
        return Outcome(_Kind.CONSUMED_THROUGH, index)


Outcome.consumed = Outcome(_Kind.CONSUMED)


class BadOutcome(UsageError):
    """A listener returned something that is no outcome."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first ``consumed_count`` messages are done; the others are delivered again after ``delay_level``."""

    consumed_count: int
    delay_level: int = BROKER_CHOOSES


def judge(returned: object, count: int) -> Verdict:
    """What a listener's return value means for the ``count`` messages it was called with.

    Raises:
        BadOutcome: it means nothing. The messages are then to be delivered again.
    """
    if returned is None:
        return Verdict(count)
    if not isinstance(returned, Outcome):
        raise BadOutcome(
            f"a listener returned {returned!r:.100}; expected None or an Outcome, such as Outcome.later()"
        )
    if returned.kind is _Kind.CONSUMED:
        return Verdict(count)
    if returned.kind is _Kind.LATER:
        return Verdict(0, returned.number)
    if returned.number >= count:
        raise BadOutcome(
            f"a listener returned consumed_through({returned.number}) for {count} messages; "
            f"the last index is {count - 1}"
        )
    return Verdict(returned.number + 1)
