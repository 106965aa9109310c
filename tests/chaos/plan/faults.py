"""What can go wrong: the faults by name, and what each needs of the machine that it runs on."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Fault(StrEnum):
    KILL = "kill"
    PAUSE = "pause"
    NAME_SERVER = "name-server"
    CUT = "cut"
    CUT_IN = "cut-in"
    CUT_OUT = "cut-out"
    SLOW = "slow"
    LOSSY = "lossy"
    FULL_DISK = "full-disk"
    SYNC_FAILS = "sync-fails"
    POWER_LOSS = "power-loss"
    BIT_FLIP = "bit-flip"
    CLOCK = "clock-jump"
    ROLLING = "rolling-restart"
    ADD_REPLICA = "add-replica"
    REMOVE_REPLICA = "remove-replica"
    FAIL_OVER = "fail-over"
    DISK_LOST = "disk-lost"


WHAT_HAPPENS: Final = {
    Fault.KILL: "a broker is killed (SIGKILL) and started again",
    Fault.PAUSE: "a broker is stopped (SIGSTOP) for longer than its peers wait, then goes on",
    Fault.NAME_SERVER: "the name server is killed and started again",
    Fault.CUT: "a broker is cut off the network, both ways",
    Fault.CUT_IN: "nothing reaches a broker, what it says still arrives",
    Fault.CUT_OUT: "nothing that a broker says arrives, it still hears",
    Fault.SLOW: "every packet from and to a broker takes longer",
    Fault.LOSSY: "packets from and to a broker get lost",
    Fault.FULL_DISK: "the disk of a broker has no space left for a while",
    Fault.SYNC_FAILS: "fsync fails at a broker for a while",
    Fault.POWER_LOSS: "a broker's machine loses power: what was never synced is gone, all or in parts",
    Fault.BIT_FLIP: "a bit of a stopped broker's log or queue files flips",
    Fault.CLOCK: "the wall clock of a broker jumps, later back",
    Fault.ROLLING: "all brokers are restarted in turn, as for an upgrade",
    Fault.ADD_REPLICA: "an empty slave joins a group",
    Fault.REMOVE_REPLICA: "that slave leaves for good",
    Fault.FAIL_OVER: "a master's machine loses power, its slave is made master, the old one returns as slave",
    Fault.DISK_LOST: "a master's machine is gone with its disk, its slave is made master, an empty one takes its place",
}

NETWORK: Final = frozenset({Fault.CUT, Fault.CUT_IN, Fault.CUT_OUT, Fault.SLOW, Fault.LOSSY})

NEEDS_COMPILER: Final = frozenset(
    {Fault.SYNC_FAILS, Fault.POWER_LOSS, Fault.CLOCK, Fault.FAIL_OVER}
)
"""Those of ``world/machine.c``, which stands between a server and its system library."""

NEEDS_ROOT: Final = frozenset({Fault.FULL_DISK})
"""A small file system is mounted."""

NEEDS_SLAVES: Final = frozenset({Fault.ADD_REPLICA, Fault.REMOVE_REPLICA, Fault.FAIL_OVER})

OF_A_MASTER: Final = frozenset({Fault.FAIL_OVER, Fault.DISK_LOST})
"""Those that hit whoever is the master of a group at that time."""

GENTLE: Final = NETWORK | {Fault.PAUSE, Fault.CLOCK, Fault.NAME_SERVER}
"""Those that end no broker: what it holds in memory stays."""
