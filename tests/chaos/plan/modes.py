"""The ways to run a cluster, and what each promises: the one table that checks, report and documents use.

A mode promises for a run that nothing is lost if it survives every fault of the run. What holds in every run, whatever
happens, is in ``ALWAYS``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tests.chaos.plan.faults import (
    GENTLE,
    NEEDS_CONTROLLERS,
    NEEDS_ETCD,
    NEEDS_SLAVES,
    OF_ETCD,
    WITHOUT_ELECTION,
    Fault,
)


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
    UNEXPECTED = "unexpected"
    TWO_MASTERS = "two masters"
    LEFT_BEHIND = "left behind"
    EPOCH_BACK = "epoch back"
    LATE = "late"


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
    Count.UNEXPECTED: "errors that a client raised and that are no CometError",
    Count.TWO_MASTERS: "epochs in which more than one broker acknowledged, or was named as master",
    Count.LEFT_BEHIND: "acknowledged with SEND_OK before an election, in no log after it",
    Count.EPOCH_BACK: "a controller or a master with a lower epoch than it had before",
    Count.LATE: "faults under which no send was acknowledged for longer than is promised",
}

ALWAYS: Final = frozenset({Count.ALTERED, Count.PHANTOM, Count.DIVERGED})
"""0 in every mode after every fault."""

OF_ELECTIONS: Final = frozenset({Count.TWO_MASTERS, Count.EPOCH_BACK})
"""0 after every fault where controllers elect."""

NEEDS_ELECTIONS: Final = OF_ELECTIONS | {Count.LEFT_BEHIND, Count.LATE}
"""What there is only where controllers elect."""

SURVIVED_BY_ALL: Final = frozenset(
    {*GENTLE, Fault.KILL, Fault.FULL_DISK, Fault.SYNC_FAILS, Fault.ROLLING}
)


@dataclass(frozen=True, slots=True)
class Mode:
    """Args:
    groups: masters. slaves: of each. role: of the masters.
    survives: after these faults everything that was acknowledged is still delivered.
    controllers: that elect the masters; then ``role`` says nothing.
    etcd: members that the controllers keep their decisions in; 0: the one controller has a file.
    """

    name: str
    what: str
    groups: int
    slaves: int
    role: str
    flush: str
    survives: frozenset[Fault]
    controllers: int = 0
    etcd: int = 0

    def has(self, count: Count) -> bool:
        """Whether there is something to count."""
        return self.controllers > 0 or count not in NEEDS_ELECTIONS

    def fits(self, fault: Fault) -> bool:
        if fault in NEEDS_ETCD:
            return self.etcd > 0
        if fault in NEEDS_CONTROLLERS:
            return self.controllers > 0
        return self.slaves > 0 or fault not in NEEDS_SLAVES

    def goes_on_within(self, fault: Fault) -> float | None:
        """The most seconds without an acknowledged send that a fault may cause; None: not promised."""
        if not self.controllers:
            return None
        others_decide = self.controllers > 1 and fault is Fault.CONTROLLER_KILL
        return GO_ON_SECONDS if fault in _GOES_ON or others_decide else None

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
        promised = ALWAYS | {Count.UNEXPECTED}
        if chosen <= self.survives:
            promised |= {Count.LOST, Count.MISSING, Count.REORDERED}
        if self.controllers:
            promised |= OF_ELECTIONS | {Count.LATE}
            if chosen <= self.survives:
                promised |= {Count.LEFT_BEHIND}
        # A new master knows the offsets that the old one had told it, not those of the last moments.
        if chosen <= (WITHOUT_ELECTION if self.controllers else GENTLE):
            promised |= {Count.OFFSET_BACK}
        if Fault.CLOCK not in chosen:
            promised |= {Count.EARLY}
        return promised


_REPLICAS = frozenset({Fault.ADD_REPLICA, Fault.REMOVE_REPLICA})
_SLAVE_HAS_ALL = _REPLICAS | {Fault.FAIL_OVER, Fault.DISK_LOST}

GO_ON_SECONDS: Final = 10.0
_GOES_ON = frozenset(
    {Fault.MASTER_KILL, Fault.SWITCH_OVER, *(OF_ETCD - {Fault.CUT_CONTROLLER_ETCD})}
)

# Who may be elected has all that was acknowledged, whether it is on a disk or not, and nobody acknowledges what the
# next master does not have. So ASYNC_FLUSH survives what hits one machine, and two of three processes.
_ELECTED_HAS_ALL = (
    SURVIVED_BY_ALL | _SLAVE_HAS_ALL | {Fault.POWER_LOSS} | (NEEDS_CONTROLLERS - NEEDS_ETCD)
)

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
        Mode(
            "controller",
            "three replicas under a controller, ASYNC_FLUSH",
            1,
            2,
            "SYNC_MASTER",
            "ASYNC_FLUSH",
            _ELECTED_HAS_ALL,
            controllers=1,
        ),
        Mode(
            "controller-sync-flush",
            "three replicas under a controller, SYNC_FLUSH",
            1,
            2,
            "SYNC_MASTER",
            "SYNC_FLUSH",
            _ELECTED_HAS_ALL,
            controllers=1,
        ),
        Mode(
            "controllers-etcd",
            "three replicas under three controllers with three members of etcd, ASYNC_FLUSH",
            1,
            2,
            "SYNC_MASTER",
            "ASYNC_FLUSH",
            _ELECTED_HAS_ALL | NEEDS_ETCD,
            controllers=3,
            etcd=3,
        ),
    )
}
