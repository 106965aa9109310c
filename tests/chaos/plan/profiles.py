"""What one call of the harness runs: a list of trials, each a mode with faults and workloads for some seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.chaos.plan.faults import GENTLE, NETWORK, Fault
from tests.chaos.plan.modes import MODES, Mode

WORKLOADS: Final = ("sends", "ordered", "transactions", "delayed", "pop", "offsets")


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a cluster."""

    mode: Mode
    faults: tuple[Fault, ...]
    workloads: tuple[str, ...]
    seconds: float
    pause_seconds: float

    @property
    def name(self) -> str:
        return f"{self.mode.name}: {', '.join(self.faults)}"


@dataclass(frozen=True, slots=True)
class Profile:
    """``pause_seconds``: how long a paused broker is away. Replication gives a silent peer 20 s, clients 3 to 30 s, a
    name server 120 s."""

    what: str
    trials: tuple[tuple[str, tuple[Fault, ...], float], ...]
    pause_seconds: float


_QUICK: Final = (Fault.KILL, Fault.CUT, Fault.CUT_IN, Fault.LOSSY)
_REPLICAS: Final = (Fault.ADD_REPLICA, Fault.REMOVE_REPLICA, Fault.FAIL_OVER)
_ALL_BUT_ROT: Final = tuple(fault for fault in Fault if fault is not Fault.BIT_FLIP)


def _kept(mode: str) -> tuple[Fault, ...]:
    """Every fault that a mode survives."""
    return tuple(fault for fault in Fault if fault in MODES[mode].survives)


PROFILES: Final = {
    "ci": Profile(
        "two minutes",
        (
            ("async-flush", (*_QUICK, Fault.SYNC_FAILS), 25),
            ("sync-flush", (Fault.KILL, Fault.POWER_LOSS), 22),
            ("sync-master", (Fault.KILL, Fault.CUT, Fault.FAIL_OVER), 32),
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
    "hour": Profile(
        "one hour",
        tuple((mode, _kept(mode), 450) for mode in MODES),
        130,
    ),
    "matrix": Profile(
        "every mode with every fault alone, which shows what each one loses: about an hour",
        tuple(
            (mode.name, (fault,), 25 if fault is not Fault.PAUSE else 40)
            for mode in MODES.values()
            for fault in Fault
            if mode.fits(fault) and fault is not Fault.REMOVE_REPLICA
        ),
        22,
    ),
}

FAULT_SETS: Final = {
    "network": tuple(sorted(NETWORK)),
    "gentle": tuple(sorted(GENTLE)),
    "replicas": _REPLICAS,
    "all": _ALL_BUT_ROT,
}
"""Names for several faults on the command line."""


def trials_of(profile: Profile) -> list[Trial]:
    return [
        Trial(MODES[mode], faults, WORKLOADS, seconds, profile.pause_seconds)
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
