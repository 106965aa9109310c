"""When which fault hits whom: a list that follows from seed, mode, faults and length, and from nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.chaos.plan.faults import OF_A_CONTROLLER, OF_A_MASTER, PAUSES, TOGETHER, Fault
from tests.chaos.plan.modes import Mode

BEGIN_SECONDS: Final = 3.0
"""The workloads run undisturbed for so long."""
GAP_SECONDS: Final = (1.0, 4.0)
ROLLING_SECONDS: Final = 2.0
"""For each server that is restarted."""
LEASE_SECONDS: Final = 10.0
"""How long controllers wait for a broker that says nothing, and a master for its controller."""
SCAN_SECONDS: Final = 5.0
"""How often controllers look."""
JUMP_SECONDS: Final = (5.0, 1800.0)

# How long a fault lasts; for those that end a process, how long it is away.
_LASTS: Final = {
    Fault.KILL: (0.1, 3.0),
    Fault.NAME_SERVER: (0.1, 3.0),
    Fault.CUT: (2.0, 8.0),
    Fault.CUT_IN: (2.0, 8.0),
    Fault.CUT_OUT: (2.0, 8.0),
    Fault.SLOW: (2.0, 6.0),
    Fault.LOSSY: (2.0, 6.0),
    Fault.FULL_DISK: (2.0, 6.0),
    Fault.SYNC_FAILS: (1.0, 4.0),
    Fault.POWER_LOSS: (0.1, 2.0),
    Fault.BIT_FLIP: (0.1, 1.0),
    Fault.CLOCK: (2.0, 6.0),
    Fault.ADD_REPLICA: (2.0, 4.0),
    Fault.REMOVE_REPLICA: (0.5, 1.0),
    Fault.FAIL_OVER: (0.5, 3.0),
    Fault.DISK_LOST: (0.5, 3.0),
    Fault.MASTER_KILL: (0.1, 3.0),
    Fault.MASTER_AND_REPLICA: (0.1, 3.0),
    Fault.SWITCH_OVER: (0.5, 1.0),
    Fault.CUT_MASTER_CONTROLLERS: (LEASE_SECONDS + SCAN_SECONDS, LEASE_SECONDS + 2 * SCAN_SECONDS),
    Fault.CONTROLLER_KILL: (0.1, 6.0),
    Fault.CONTROLLER_CUT: (4.0, LEASE_SECONDS + SCAN_SECONDS),
    Fault.CUT_CONTROLLER_ETCD: (4.0, LEASE_SECONDS + SCAN_SECONDS),
    Fault.ETCD_KILL: (0.5, 6.0),
}


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """``target`` is a host's name, or that of a broker group where the whole group is meant. ``amount``: milliseconds
    of a slow link, share of lost packets, seconds of a clock's jump. ``seed`` is for what the fault itself chooses.
    ``parts`` are the failures that happen at once, in the order in which they begin."""

    at: float
    seconds: float
    kind: Fault
    target: str
    amount: float
    seed: int
    parts: tuple[PlannedFault, ...] = ()

    def __str__(self) -> str:
        amount = f" {self.amount:g}" if self.amount else ""
        return f"{self.at:6.1f} s {self.kind} {self.target}{amount} for {self.seconds:.1f} s"


def group_names(mode: Mode) -> list[str]:
    return [f"b{number + 1}" for number in range(mode.groups)]


def broker_names(mode: Mode) -> list[str]:
    """Masters are named as their group; slaves have its name and a number."""
    return [
        name
        for group in group_names(mode)
        for name in (group, *(f"{group}s{number + 1}" for number in range(mode.slaves)))
    ]


def controller_names(mode: Mode) -> list[str]:
    return [f"c{number + 1}" for number in range(mode.controllers)]


def etcd_names(mode: Mode) -> list[str]:
    return [f"e{number + 1}" for number in range(mode.etcd)]


def plan(
    seed: int,
    seconds: float,
    mode: Mode,
    kinds: Iterable[Fault],
    *,
    pause_seconds: float,
    count: int = 0,
) -> list[PlannedFault]:
    """One fault after the other: each ends before the next begins, as the promises are about one at a time.

    With a ``count`` there are so many, however long it takes; else as many as end within ``seconds``.
    """
    random = Random(seed)
    wanted = sorted(kind for kind in set(kinds) if mode.fits(kind))
    planned: list[PlannedFault] = []
    at = BEGIN_SECONDS + random.uniform(*GAP_SECONDS)
    for kind in _in_turn(random, wanted):
        fault = _planned(random, at, kind, mode, pause_seconds)
        if (len(planned) == count) if count else (at + fault.seconds > seconds):
            break
        planned.append(fault)
        at += fault.seconds + random.uniform(*GAP_SECONDS)
    return planned


def _planned(
    random: Random, at: float, kind: Fault, mode: Mode, pause_seconds: float
) -> PlannedFault:
    if kind in TOGETHER:
        parts = tuple(_planned(random, at, part, mode, pause_seconds) for part in TOGETHER[kind])
        target = " and ".join(part.target for part in parts)
        seconds = max(part.seconds for part in parts)
        return PlannedFault(round(at, 2), seconds, kind, target, 0.0, random.getrandbits(31), parts)
    lasts = random.uniform(*_lasts(kind, pause_seconds, mode))
    target = random.choice(_targets(kind, mode))
    amount = _amount(random, kind)
    return PlannedFault(round(at, 2), round(lasts, 2), kind, target, amount, random.getrandbits(31))


def begin_of(fault: PlannedFault, before_ended: float) -> float:
    """When a fault really begins: clients get something done after the one before, also when that took too long."""
    return max(fault.at, before_ended + GAP_SECONDS[0])


def _in_turn(random: Random, kinds: list[Fault]) -> Iterator[Fault]:
    """All kinds in a random order, and again: a run that is long enough has each of them."""
    while kinds:
        random.shuffle(kinds)
        # A replica is removed only after it was added.
        if Fault.REMOVE_REPLICA in kinds and Fault.ADD_REPLICA in kinds:
            added, removed = kinds.index(Fault.ADD_REPLICA), kinds.index(Fault.REMOVE_REPLICA)
            if removed < added:
                kinds[added], kinds[removed] = kinds[removed], kinds[added]
        yield from list(kinds)


def _lasts(kind: Fault, pause_seconds: float, mode: Mode) -> tuple[float, float]:
    if kind in PAUSES:
        # Where a lease decides who is master, a shorter pause would show nothing.
        seconds = max(pause_seconds, LEASE_SECONDS + SCAN_SECONDS if mode.controllers else 0.0)
        return seconds, seconds * 1.2
    if kind is Fault.ROLLING:
        # Everything: with controllers the name server and their etcd, too.
        servers = len(broker_names(mode)) + mode.etcd + mode.controllers + bool(mode.controllers)
        return ROLLING_SECONDS * servers, ROLLING_SECONDS * servers
    return _LASTS[kind]


def _targets(kind: Fault, mode: Mode) -> list[str]:
    if kind is Fault.NAME_SERVER:
        return ["n1"]
    if kind is Fault.ROLLING:
        return ["all"]
    if kind in (Fault.ADD_REPLICA, Fault.REMOVE_REPLICA):
        return group_names(mode)[:1]
    if kind in OF_A_MASTER:
        return group_names(mode)
    if kind in OF_A_CONTROLLER or kind is Fault.CUT_CONTROLLER_ETCD:
        return controller_names(mode)
    if kind is Fault.ETCD_GONE:
        return ["etcd"]
    if kind in (Fault.ETCD_KILL, Fault.ETCD_PAUSE):
        return etcd_names(mode)
    if kind is Fault.CLOCK:
        return broker_names(mode) + controller_names(mode)
    return broker_names(mode)


def _amount(random: Random, kind: Fault) -> float:
    if kind is Fault.SLOW:
        return round(random.uniform(20, 300))
    if kind is Fault.LOSSY:
        return round(random.uniform(0.02, 0.3), 2)
    if kind is Fault.CLOCK:
        return round(random.choice((-1, 1)) * random.uniform(*JUMP_SECONDS), 1)
    return 0.0
