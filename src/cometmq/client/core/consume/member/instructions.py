"""What the state machine of a member wants done. Shells do it and report back. No I/O.

Instructions are carried out in the order given; those that an answer brings come behind those that are already waiting.
``queue_life`` says which event answers which instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cometmq.model.messages.received_message import ReceivedMessage

if TYPE_CHECKING:
    from cometmq.client.core.consume.member.held_queue import HeldQueue
    from cometmq.client.core.consume.member.queue_life import QueueLife

# Taking a queue.


@dataclass(frozen=True, slots=True)
class AskOwner:
    """Find out whether another member still has the queue: ``owner_answered`` or ``owner_silent``."""

    life: QueueLife
    owner: str


@dataclass(frozen=True, slots=True)
class Lock:
    """Have the broker lock the queue: ``lock_answered``."""

    life: QueueLife


@dataclass(frozen=True, slots=True)
class FindStart:
    """Look up the offset to begin at: ``start_found`` or ``failed``."""

    life: QueueLife


@dataclass(frozen=True, slots=True)
class Begin:
    """The queue is held: pull it (``QueueLife.next_pull``) and consume it."""

    life: QueueLife


# While it is held.


@dataclass(frozen=True, slots=True)
class Deliver:
    """Have these messages consumed."""

    held: HeldQueue
    messages: Sequence[ReceivedMessage]


@dataclass(frozen=True, slots=True)
class ResumePull:
    """There is room again: ask ``next_pull`` now and not only when the pause is over."""

    held: HeldQueue


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Have the broker deliver these messages again later.

    ``HeldQueue.sent_back`` for each one that it took, then ``HeldQueue.keep`` with all others.
    """

    held: HeldQueue
    messages: Sequence[ReceivedMessage]
    delay_level: int


@dataclass(frozen=True, slots=True)
class Resubmit:
    """Deliver these messages once more after a pause, unless the queue is dropped by then."""

    held: HeldQueue
    messages: Sequence[ReceivedMessage]
    seconds: float


# Letting go of it.


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Begin nothing more of the queue: ``withdrawn`` with the number of jobs that were not begun."""

    life: QueueLife


@dataclass(frozen=True, slots=True)
class EndPull:
    """Stop pulling at once, if that is not done yet. A pull under way is given up."""

    life: QueueLife


@dataclass(frozen=True, slots=True)
class Commit:
    """Store the group's position: ``committed``, or ``failed`` when it is known that it was not stored."""

    life: QueueLife
    offset: int


@dataclass(frozen=True, slots=True)
class Unlock:
    """Let others have the queue: ``unlocked``."""

    life: QueueLife


@dataclass(frozen=True, slots=True)
class Gone:
    """The queue is not this member's any more."""

    life: QueueLife


# At any time.


@dataclass(frozen=True, slots=True)
class Wake:
    """Call ``wake`` at this time. Replaces the timer that the queue had before."""

    life: QueueLife
    at: float


@dataclass(frozen=True, slots=True)
class Again:
    """Share the queues out once more after this time."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Tell:
    """Something for the log, fields included."""

    text: str
    is_warning: bool = False


Instruction = (
    AskOwner
    | Lock
    | FindStart
    | Begin
    | Deliver
    | ResumePull
    | RetryLater
    | Resubmit
    | Withdraw
    | EndPull
    | Commit
    | Unlock
    | Gone
    | Wake
    | Again
    | Tell
)
Instructions = Sequence[Instruction]

NOTHING: Final[Instructions] = ()
