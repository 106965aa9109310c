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
    MASTER_KILL = "master-kill"
    MASTER_PAUSE = "master-pause"
    SWITCH_OVER = "switch-over"
    CUT_MASTER_CONTROLLERS = "cut-master-controllers"
    CONTROLLER_KILL = "controller-kill"
    CONTROLLER_PAUSE = "controller-pause"
    CONTROLLER_CUT = "controller-cut"
    CUT_CONTROLLER_ETCD = "cut-controller-etcd"
    ETCD_KILL = "etcd-kill"
    ETCD_PAUSE = "etcd-pause"
    ETCD_GONE = "etcd-gone"
    MASTER_AND_REPLICA = "master-kill+replica-kill"
    MASTER_AND_CONTROLLER = "master-kill+controller-cut"
    PAUSE_AND_CONTROLLER = "master-pause+controller-kill"
    MASTER_AND_ETCD = "master-kill+etcd-kill"


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
    Fault.MASTER_KILL: "whoever is master is killed and started again; a controller elects",
    Fault.MASTER_PAUSE: "whoever is master is stopped (SIGSTOP) for longer than every timeout, then wakes up as one",
    Fault.SWITCH_OVER: "an operator has another replica elected (electMaster)",
    Fault.CUT_MASTER_CONTROLLERS: "master and controllers do not reach each other, everybody else does",
    Fault.CONTROLLER_KILL: "a controller is killed and started again",
    Fault.CONTROLLER_PAUSE: "a controller is stopped (SIGSTOP) for longer than every timeout, then goes on",
    Fault.CONTROLLER_CUT: "a controller is cut off the network, both ways",
    Fault.CUT_CONTROLLER_ETCD: "a controller and etcd do not reach each other",
    Fault.ETCD_KILL: "a member of etcd is killed and started again",
    Fault.ETCD_PAUSE: "a member of etcd is stopped (SIGSTOP) for longer than every timeout, then goes on",
    Fault.ETCD_GONE: "all members of etcd are stopped for longer than every lease",
    Fault.MASTER_AND_REPLICA: "the master and another replica are killed at once; the one that is left is elected",
    Fault.MASTER_AND_CONTROLLER: "the master is killed while a controller is cut off the network",
    Fault.PAUSE_AND_CONTROLLER: "the master is paused while a controller is killed",
    Fault.MASTER_AND_ETCD: "the master is killed while a member of etcd is away",
}

NETWORK: Final = frozenset({Fault.CUT, Fault.CUT_IN, Fault.CUT_OUT, Fault.SLOW, Fault.LOSSY})

NEEDS_COMPILER: Final = frozenset(
    {Fault.SYNC_FAILS, Fault.POWER_LOSS, Fault.CLOCK, Fault.FAIL_OVER}
)
"""Those of ``world/machine.c``, which stands between a server and its system library."""

NEEDS_ROOT: Final = frozenset({Fault.FULL_DISK})
"""A small file system is mounted."""

NEEDS_SLAVES: Final = frozenset({Fault.ADD_REPLICA, Fault.REMOVE_REPLICA, Fault.FAIL_OVER})

OF_ETCD: Final = frozenset(
    {Fault.CUT_CONTROLLER_ETCD, Fault.ETCD_KILL, Fault.ETCD_PAUSE, Fault.ETCD_GONE}
)
OF_A_CONTROLLER: Final = frozenset(
    {Fault.CONTROLLER_KILL, Fault.CONTROLLER_PAUSE, Fault.CONTROLLER_CUT}
)

TOGETHER: Final = {
    Fault.MASTER_AND_CONTROLLER: (Fault.CONTROLLER_CUT, Fault.MASTER_KILL),
    Fault.PAUSE_AND_CONTROLLER: (Fault.CONTROLLER_KILL, Fault.MASTER_PAUSE),
    Fault.MASTER_AND_ETCD: (Fault.ETCD_KILL, Fault.MASTER_KILL),
}
"""Two failures at once: the second begins while the first lasts."""

OF_AN_ELECTED_MASTER: Final = frozenset(
    {
        Fault.MASTER_KILL,
        Fault.MASTER_PAUSE,
        Fault.SWITCH_OVER,
        Fault.CUT_MASTER_CONTROLLERS,
        Fault.MASTER_AND_REPLICA,
    }
)

NEEDS_ETCD: Final = OF_ETCD | {Fault.MASTER_AND_ETCD}

NEEDS_CONTROLLERS: Final = OF_A_CONTROLLER | OF_AN_ELECTED_MASTER | NEEDS_ETCD | TOGETHER.keys()

PAUSES: Final = frozenset(
    {Fault.PAUSE, Fault.MASTER_PAUSE, Fault.CONTROLLER_PAUSE, Fault.ETCD_PAUSE, Fault.ETCD_GONE}
)
"""Those that have to outlast what everybody else waits for."""

OF_A_MASTER: Final = frozenset({Fault.FAIL_OVER, Fault.DISK_LOST, *OF_AN_ELECTED_MASTER})
"""Those that hit whoever is the master of a group at that time."""

GENTLE: Final = NETWORK | {Fault.PAUSE, Fault.CLOCK, Fault.NAME_SERVER}
"""Those that end no broker: what it holds in memory stays."""

WITHOUT_ELECTION: Final = frozenset(
    {Fault.NAME_SERVER, Fault.CLOCK, Fault.ETCD_KILL, Fault.ETCD_PAUSE, Fault.ETCD_GONE}
)
"""Those after which the master of a group with controllers is the same as before."""
