"""What is decided about the brokers of one name: plain data, from which ``decisions`` and ``election`` make the next.

A ``DecisionStore`` keeps one such value for each broker name. Nothing else of a controller outlives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

GROUPS_MAX: Final = 2_000
MEMBERS_MAX: Final = 64
NAME_CHARS_MAX: Final = 255
EPOCH_MAX: Final = (1 << 31) - 1
"""Java's largest int."""

REPORTED_EPOCH_MAX: Final = 1 << 30
"""No broker has seen so many elections. One that says so must not use up the epochs that are left."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A broker that has an id. The check code tells who asked for it, so that the same broker may ask again."""

    address: str
    check_code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The brokers of one name. Epochs and ids only grow, even when all brokers are forgotten.

    Attributes:
        master_epoch: grows whenever the master changes, so each epoch has one master or none.
        sync_state_set: ids of the replicas that have all that was acknowledged; a master is one of them.
        began_epoch: the master epoch in which the group began, or began anew because all its brokers were forgotten.
    """

    cluster: str
    broker_name: str
    next_id: int = 1
    members: Mapping[int, Member] = field(default_factory=dict)
    master_id: int | None = None
    master_epoch: int = 0
    sync_state_set: frozenset[int] = frozenset()
    sync_state_set_epoch: int = 0
    began_epoch: int = 0

    @property
    def is_new(self) -> bool:
        """It had no master yet, so nothing can have been acknowledged."""
        return self.master_epoch == self.began_epoch

    @property
    def master(self) -> Member | None:
        return None if self.master_id is None else self.members[self.master_id]

    def fault(self) -> str | None:
        """What no sequence of decisions can have led to, or None."""
        ids = self.members.keys()
        if self.master_id is not None and self.master_id not in self.sync_state_set:
            return f"the master {self.master_id} is not in its own sync state set"
        if not self.sync_state_set <= ids:
            return "the sync state set names brokers that do not exist"
        if any(not 0 < broker_id < self.next_id for broker_id in ids):
            return f"there is an id that was never given; the next one is {self.next_id}"
        if not 0 <= self.began_epoch <= self.master_epoch <= EPOCH_MAX:
            return f"the master epoch {self.master_epoch} cannot be"
        if self.is_new and self.sync_state_set:
            return "there is a sync state set, and there was no master"
        if not 0 <= self.sync_state_set_epoch <= EPOCH_MAX:
            return f"the sync state set epoch {self.sync_state_set_epoch} cannot be"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Generic[T]):
    """What a request leads to.

    Attributes:
        group: how the group is from now on; the same object as before if nothing changes.
        answer: what the one who asked is told.
        line: for the log once it is stored: what was decided, and why. Empty if nothing was.
    """

    group: Group | None
    answer: T
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a broker's last heartbeat said. Before the first one, nothing is known of its log."""

    epoch: int = -1
    max_offset: int = -1
    priority: int = EPOCH_MAX

    @property
    def log(self) -> tuple[int, int]:
        """Compares as logs do: the higher one has more."""
        return self.epoch, self.max_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Living:
    """Which brokers of a group are alive.

    Attributes:
        reports: of those that were heard from in time.
        doubtful: those that this controller has not heard from, because it began to listen or to lead a moment ago.
    """

    reports: Mapping[int, Report] = field(default_factory=dict)
    doubtful: frozenset[int] = frozenset()

    @property
    def newest_epoch(self) -> int:
        """The latest election that any of them has records of; -1 if none has."""
        return max(
            (min(one.epoch, REPORTED_EPOCH_MAX) for one in self.reports.values()), default=-1
        )

    def may_include(self, broker_id: int | None) -> bool:
        return broker_id in self.reports or broker_id in self.doubtful
