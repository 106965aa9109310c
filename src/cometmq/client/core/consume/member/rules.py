"""The settings that decide how a member of a consumer group treats its queues. No I/O.

Times are monotonic seconds here and in the whole package; they come with the events.
"""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.model.allocation import STRATEGIES, Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRules:
    strategy: Strategy = STRATEGIES["AVG"]
    is_orderly: bool = False
    is_broadcast: bool = False
    """Every member reads every queue, so there is nothing to hand over, to lock or to send back."""
    handover_seconds: float = 10.0
    """How long the old owner of a queue lets its listeners finish, and the new one waits for that. 0: not at all."""
    answer_seconds: float = 60.0
    """A broker that has not answered by then is taken as one that refused. Calls end long before that."""
    lock_valid_seconds: float = 30.0
    """How long an orderly queue is consumed after its lock was last confirmed."""
    pull_interval_seconds: float = 0.0
    pull_error_seconds: float = 1.0
    suspend_seconds: float = 1.0
    """How long an orderly queue waits after a failure."""
    reconsume_times_max: int | None = None
    """With this many retries behind it a message of an orderly queue becomes a dead letter. None: never."""

    @property
    def has_locks(self) -> bool:
        return self.is_orderly and not self.is_broadcast

    @property
    def asks_old_owners(self) -> bool:
        """An orderly queue needs no questions: its lock passes it on."""
        return bool(self.handover_seconds) and not self.is_broadcast and not self.is_orderly
