"""What a broker under a controller is, from what the controller tells it, and for how long that is certain. No I/O.

    fenced   at the start, and when nobody answers: it serves nobody as a master
    slave    of the master that the controller names
    master   as long as the controller has said so within the lease

A master proves with each answer that it still is one, from the moment on at which it asked. Without a proof for as long
as the controller waits for its heartbeats, another may be elected: it steps down by itself, and sends no heartbeats, so
that the controller does elect another if it hears this broker, but is not heard. Times are monotonic seconds.

A controller that cannot reach its store tells what it remembers. That lets a master go on, and changes nothing: if
another was elected meanwhile, it is of the SyncStateSet and follows no longer, so nothing is acknowledged without it.
Whoever has just started knows no epoch, and would believe one that is over.
"""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.broker.controller_client.group_view import GroupView


@dataclass(frozen=True, slots=True)
class BecomeMaster:
    view: GroupView


@dataclass(frozen=True, slots=True)
class BecomeSlave:
    view: GroupView


@dataclass(frozen=True, slots=True)
class TakeSet:
    """Still the master; this is the SyncStateSet, or was when it was asked for."""

    view: GroupView
    asked_at: float


@dataclass(frozen=True, slots=True)
class StandForElection:
    """The group has no master."""


@dataclass(frozen=True, slots=True)
class StepDown:
    """No longer certain to be the master, or certain that there is none."""

    reason: str


Instruction = BecomeMaster | BecomeSlave | TakeSet | StandForElection | StepDown


class Standing:
    """
    Args:
        lease_seconds: how long the controller waits for heartbeats.
    """

    def __init__(self, lease_seconds: float) -> None:
        self._lease_seconds = lease_seconds
        self._answered_at: float | None = None
        self._proven_at = 0.0
        self._master_address: str | None = None
        self.own_id = 0
        self.epoch = 0
        """The last election that is known."""
        self.is_master = False

    def is_proven(self, now: float) -> bool:
        """Whether this broker is the master for certain."""
        return self.is_master and now - self._proven_at < self._lease_seconds

    def is_in_touch(self, now: float) -> bool:
        """Whether the controller answers, so that a heartbeat is no lie."""
        return self._answered_at is not None and now - self._answered_at < self._lease_seconds

    def told(self, view: GroupView, asked_at: float) -> list[Instruction]:
        """The controller has answered a question that was asked at ``asked_at``."""
        self.answered(asked_at)
        if view.epoch < self.epoch:
            # The answer was under way for long, or is from a controller that was elsewhere.
            return []
        if not view.is_certain:
            if self.is_master and (view.epoch, view.master_id) == (self.epoch, self.own_id):
                self._proven_at = asked_at
            return []
        is_new = view.epoch > self.epoch
        self.epoch = view.epoch
        if view.master_id is None:
            self._master_address = None
            return [*self._lay_down("the group has no master"), StandForElection()]
        if view.master_id == self.own_id:
            self._proven_at = asked_at
            self._master_address = None
            if self.is_master and not is_new:
                return [TakeSet(view, asked_at)]
            self.is_master = True
            return [BecomeMaster(view)]
        if is_new or self.is_master or view.master_address != self._master_address:
            self.is_master = False
            self._master_address = view.master_address
            return [BecomeSlave(view)]
        return []

    def answered(self, asked_at: float) -> None:
        """The same, if the answer says nothing of a master."""
        self._answered_at = max(asked_at, self._answered_at or asked_at)

    def tick(self, now: float) -> list[Instruction]:
        """To be called every second or so."""
        if self.is_master and not self.is_proven(now):
            return self._lay_down(f"no controller has answered for {self._lease_seconds:g} s")
        return []

    def failed(self, reason: str) -> list[Instruction]:
        """This broker cannot be what it should be. It tries again with the next answer."""
        self._master_address = None
        return self._lay_down(reason)

    def _lay_down(self, reason: str) -> list[Instruction]:
        if not self.is_master:
            return []
        self.is_master = False
        return [StepDown(reason)]

    def __repr__(self) -> str:
        kind = "master" if self.is_master else f"of {self._master_address}"
        return f"<Standing id={self.own_id} epoch={self.epoch} {kind}>"
