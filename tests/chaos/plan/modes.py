"""The ways to run a cluster, and what each promises: the one table that checks, report and documents use.

A mode promises for a run that nothing is lost if it survives every fault of the run. What holds in every run, whatever
happens, is in ``ALWAYS``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tests.chaos.plan.faults import GENTLE, NEEDS_SLAVES, Fault


class Count(StrEnum):
    """What the checkers count."""

    LOST = "lost"
    MISSING = "missing"
    ALTERED = "altered"
    PHANTOM = "phantom"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    EARLY = "early"
    OFFSET_BACK = "offset back"
    DIVERGED = "diverged"


MEANING: Final = {
    Count.LOST: "acknowledged with SEND_OK, never delivered",
    Count.MISSING: "acknowledged with SEND_OK, no longer in the log of its broker at the end",
    Count.ALTERED: "delivered with a body that is not what was sent",
    Count.PHANTOM: "delivered, but never sent, or rolled back",
    Count.DUPLICATED: "delivered again (allowed: at least once)",
    Count.REORDERED: "of an ordered queue: overtaken by a later one of its key",
    Count.EARLY: "a delayed message before its time",
    Count.OFFSET_BACK: "a committed offset that went back",
    Count.DIVERGED: "replicas whose logs differ below the end of the shorter one",
}

ALWAYS: Final = frozenset({Count.ALTERED, Count.PHANTOM, Count.DIVERGED})
"""0 in every mode after every fault."""

SURVIVED_BY_ALL: Final = frozenset(
    {*GENTLE, Fault.KILL, Fault.FULL_DISK, Fault.SYNC_FAILS, Fault.ROLLING}
)


@dataclass(frozen=True, slots=True)
class Mode:
    """Args:
    groups: masters. slaves: of each. role: of the masters.
    survives: after these faults everything that was acknowledged is still delivered.
    """

    name: str
    what: str
    groups: int
    slaves: int
    role: str
    flush: str
    survives: frozenset[Fault]

    def fits(self, fault: Fault) -> bool:
        return self.slaves > 0 or fault not in NEEDS_SLAVES

    def may_lose(self, fault: Fault) -> str:
        """What of the acknowledged messages may be gone after a fault, as docs/reliability.md says it; empty: none."""
        if fault in self.survives:
            return ""
        if fault is Fault.BIT_FLIP:
            return "what it hit, where no replica has it"
        if fault is Fault.POWER_LOSS:
            return "the last ones may be lost"
        return (
            "those that had not reached the slave may be lost"
            if self.slaves
            else "all that it had is lost"
        )

    def promised(self, faults: Iterable[Fault]) -> frozenset[Count]:
        """What must be 0 after a run with these faults."""
        chosen = frozenset(faults)
        promised = ALWAYS
        if chosen <= self.survives:
            promised |= {Count.LOST, Count.MISSING, Count.REORDERED}
        if chosen <= GENTLE:
            promised |= {Count.OFFSET_BACK}
        if Fault.CLOCK not in chosen:
            promised |= {Count.EARLY}
        return promised


_REPLICAS = frozenset({Fault.ADD_REPLICA, Fault.REMOVE_REPLICA})
_SLAVE_HAS_ALL = _REPLICAS | {Fault.FAIL_OVER, Fault.DISK_LOST}

MODES: Final = {
    mode.name: mode
    for mode in (
        Mode(
            "async-flush",
            "one broker, ASYNC_FLUSH",
            1,
            0,
            "ASYNC_MASTER",
            "ASYNC_FLUSH",
            SURVIVED_BY_ALL,
        ),
        Mode(
            "sync-flush",
            "one broker, SYNC_FLUSH",
            1,
            0,
            "ASYNC_MASTER",
            "SYNC_FLUSH",
            SURVIVED_BY_ALL | {Fault.POWER_LOSS},
        ),
        Mode(
            "async-master",
            "ASYNC_MASTER and a slave, ASYNC_FLUSH",
            1,
            1,
            "ASYNC_MASTER",
            "ASYNC_FLUSH",
            SURVIVED_BY_ALL | _REPLICAS,
        ),
        Mode(
            "async-master-sync-flush",
            "ASYNC_MASTER and a slave, SYNC_FLUSH",
            1,
            1,
            "ASYNC_MASTER",
            "SYNC_FLUSH",
            SURVIVED_BY_ALL | _REPLICAS | {Fault.POWER_LOSS},
        ),
        Mode(
            "sync-master",
            "SYNC_MASTER and a slave, ASYNC_FLUSH",
            1,
            1,
            "SYNC_MASTER",
            "ASYNC_FLUSH",
            SURVIVED_BY_ALL | _SLAVE_HAS_ALL,
        ),
        Mode(
            "sync-master-sync-flush",
            "SYNC_MASTER and a slave, SYNC_FLUSH",
            1,
            1,
            "SYNC_MASTER",
            "SYNC_FLUSH",
            SURVIVED_BY_ALL | _SLAVE_HAS_ALL | {Fault.POWER_LOSS},
        ),
        Mode(
            "2m-noslave",
            "two masters without slaves, ASYNC_FLUSH",
            2,
            0,
            "ASYNC_MASTER",
            "ASYNC_FLUSH",
            SURVIVED_BY_ALL,
        ),
        Mode(
            "2m-2s-async",
            "two ASYNC_MASTERs with a slave each, ASYNC_FLUSH",
            2,
            1,
            "ASYNC_MASTER",
            "ASYNC_FLUSH",
            SURVIVED_BY_ALL | _REPLICAS,
        ),
        Mode(
            "2m-2s-sync",
            "two SYNC_MASTERs with a slave each, ASYNC_FLUSH",
            2,
            1,
            "SYNC_MASTER",
            "ASYNC_FLUSH",
            SURVIVED_BY_ALL | _SLAVE_HAS_ALL,
        ),
    )
}
