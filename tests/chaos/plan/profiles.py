"""What one call of the harness runs: a list of trials, each a mode with faults and workloads for some seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tests.chaos.plan.faults import GENTLE, NEEDS_CONTROLLERS, NETWORK, PAUSES, Fault
from tests.chaos.plan.modes import MODES, Mode

WORKLOADS: Final = ("sends", "ordered", "transactions", "delayed", "pop", "offsets")


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a cluster. With a ``count`` it ends after so many faults, and ``seconds`` is the most it may take."""

    mode: Mode
    faults: tuple[Fault, ...]
    workloads: tuple[str, ...]
    seconds: float
    pause_seconds: float
    count: int = 0

    @property
    def name(self) -> str:
        return f"{self.mode.name}: {', '.join(self.faults)}"


@dataclass(frozen=True, slots=True)
class Profile:
    """``pause_seconds``: how long a paused broker is away. Replication gives a silent peer 20 s, clients 3 to 30 s, a
    name server 120 s. ``count``: of faults in each trial, see ``Trial``."""

    what: str
    trials: tuple[tuple[str, tuple[Fault, ...], float], ...]
    pause_seconds: float
    count: int = 0


_QUICK: Final = (Fault.KILL, Fault.CUT, Fault.CUT_IN, Fault.LOSSY)
_REPLICAS: Final = (Fault.ADD_REPLICA, Fault.REMOVE_REPLICA, Fault.FAIL_OVER, Fault.DISK_LOST)
_REPAIRABLE: Final = tuple(
    fault for fault in Fault if fault not in (Fault.BIT_FLIP, Fault.DISK_LOST)
)
"""Those after which nothing is destroyed for good where there is no replica."""

PAGE_MODES: Final = tuple(mode.name for mode in MODES.values() if mode.groups == 1)
PAGE_FAULTS: Final = (
    Fault.ROLLING,
    Fault.KILL,
    Fault.POWER_LOSS,
    Fault.FAIL_OVER,
    Fault.DISK_LOST,
)
"""What docs/reliability.md shows: RocketMQ's six kinds of failure. A crash of the system and a power loss are the same
here, and so are a machine and a disk that are gone for ever. Where there is a slave, a power loss ends in one of two
ways: the machine comes back as what it was, or the slave is promoted."""


def _kept(mode: str) -> tuple[Fault, ...]:
    """Every fault that a mode survives."""
    return tuple(fault for fault in Fault if fault in MODES[mode].survives)


CONTROLLED: Final = tuple(mode.name for mode in MODES.values() if mode.controllers)
_CONTROLLED_BY_ONE: Final = (
    Fault.MASTER_KILL,
    Fault.MASTER_PAUSE,
    Fault.SWITCH_OVER,
    Fault.CONTROLLER_KILL,
    Fault.CUT,
    Fault.CLOCK,
    Fault.MASTER_AND_REPLICA,
)
_TWO_FAILURES: Final = (
    Fault.MASTER_AND_REPLICA,
    Fault.MASTER_AND_CONTROLLER,
    Fault.PAUSE_AND_CONTROLLER,
    Fault.MASTER_AND_ETCD,
)
_ONE_FAILURE: Final = (
    *(kind for kind in Fault if kind in NEEDS_CONTROLLERS and kind not in _TWO_FAILURES),
    Fault.ROLLING,
)


def seconds_for(count: int) -> float:
    """The most that so many faults may take; 4 to 7 s each is usual, 20 s where a lease has to end."""
    return 10.0 + 30.0 * count


PROFILES: Final = {
    "ci": Profile(
        "two minutes",
        (
            ("async-flush", (*_QUICK, Fault.SYNC_FAILS), 20),
            ("sync-flush", (Fault.KILL, Fault.POWER_LOSS), 15),
            ("sync-master", (Fault.KILL, Fault.CUT, Fault.FAIL_OVER), 25),
            ("controllers-etcd", (Fault.MASTER_KILL, Fault.SWITCH_OVER, Fault.ETCD_KILL), 22),
        ),
        8,
    ),
    "ten": Profile(
        "ten minutes",
        (
            ("async-flush", _kept("async-flush"), 75),
            ("sync-flush", _kept("sync-flush"), 75),
            ("2m-noslave", _kept("2m-noslave"), 60),
            ("async-master", _kept("async-master"), 75),
            ("sync-master", _kept("sync-master"), 90),
            ("2m-2s-async", (Fault.KILL, Fault.CUT, Fault.FAIL_OVER), 40),
            ("2m-2s-sync", (Fault.KILL, Fault.CUT, Fault.FAIL_OVER), 40),
        ),
        22,
    ),
    "controller": Profile(
        "elections: ten minutes",
        (
            ("controller", _CONTROLLED_BY_ONE, 130),
            ("controller-sync-flush", (Fault.MASTER_KILL, Fault.FAIL_OVER, Fault.DISK_LOST), 70),
            ("controllers-etcd", _ONE_FAILURE, 220),
            ("controllers-etcd", _TWO_FAILURES, 90),
        ),
        16,
    ),
    "controller-hour": Profile(
        "elections: one hour",
        tuple((mode, _kept(mode), 1100) for mode in CONTROLLED),
        22,
    ),
    "hour": Profile(
        "one hour",
        tuple((mode, _kept(mode), 350) for mode in MODES if mode not in CONTROLLED),
        130,
    ),
    "matrix": Profile(
        "every mode with every fault alone, which shows what each one loses: two hours and a half",
        tuple(
            (mode.name, (fault,), 40 if fault in PAUSES else 25)
            for mode in MODES.values()
            for fault in Fault
            if mode.fits(fault) and fault is not Fault.REMOVE_REPLICA
        ),
        22,
    ),
    "modes": Profile(
        "the table of docs/reliability.md: nine modes, each kind of failure four times, alone; 40 minutes",
        tuple(
            (mode, (fault,), seconds_for(4))
            for mode in PAGE_MODES
            for fault in PAGE_FAULTS
            if MODES[mode].fits(fault)
        ),
        22,
        count=4,
    ),
    "fifty": Profile(
        "what each mode is for, fifty times: kills, power losses, fail-overs, elections; 20 minutes",
        (
            ("async-flush", (Fault.KILL,), seconds_for(50)),
            ("sync-flush", (Fault.POWER_LOSS,), seconds_for(50)),
            ("sync-master", (Fault.FAIL_OVER,), seconds_for(50)),
            ("controller", (Fault.MASTER_KILL,), seconds_for(50)),
            ("controllers-etcd", (Fault.MASTER_KILL,), seconds_for(50)),
        ),
        22,
        count=50,
    ),
}

FAULT_SETS: Final = {
    "network": tuple(sorted(NETWORK)),
    "gentle": tuple(sorted(GENTLE)),
    "replicas": _REPLICAS,
    "elections": tuple(sorted(NEEDS_CONTROLLERS)),
    "all": _REPAIRABLE,
}
"""Names for several faults on the command line."""


def without_etcd(trial: Trial) -> Trial:
    """What comes closest on a machine that has none: one controller with a file."""
    mode = MODES["controller"]
    faults = tuple(fault for fault in trial.faults if mode.fits(fault))
    return replace(trial, mode=mode, faults=faults)


def trials_of(profile: Profile) -> list[Trial]:
    return [
        Trial(MODES[mode], faults, WORKLOADS, seconds, profile.pause_seconds, profile.count)
        for mode, faults, seconds in profile.trials
    ]


def faults_named(text: str) -> tuple[Fault, ...]:
    """``kill,network`` and the like. Raises ValueError for a name that there is not."""
    chosen: list[Fault] = []
    for name in text.split(","):
        if name in FAULT_SETS:
            chosen += FAULT_SETS[name]
        elif name in list(Fault):
            chosen.append(Fault(name))
        else:
            known = ", ".join([*Fault, *FAULT_SETS])
            raise ValueError(f"no fault {name!r}; expected some of {known}, separated by commas")
    return tuple(dict.fromkeys(chosen))


def workloads_named(text: str) -> tuple[str, ...]:
    """Raises ValueError for a name that there is not."""
    chosen: Sequence[str] = text.split(",")
    for name in chosen:
        if name not in WORKLOADS:
            raise ValueError(f"no workload {name!r}; expected some of {', '.join(WORKLOADS)}")
    return tuple(dict.fromkeys(chosen))
