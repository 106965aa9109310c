"""When a slave stands in for its lost master, and when it stops to. No I/O.

    the master is there           slave: readers are sent back to the master
    no master, an id lower        slave: serves who comes
    no master, its id the lowest  acting: name servers list the slave as the master, for readers alone

An acting slave appends nothing, so its log stays a copy of its master's. It serves pulls, positions, locks and
look-ups. Whatever has to be written waits for the master: sends are refused, pops too, and delayed messages, timed
messages and transactions stay where they are in the log.
``member_group`` feeds it and carries the instructions out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cometmq.model.ids import MASTER_ID


@dataclass(frozen=True, slots=True)
class MasterCame:
    """Send readers back to it."""

    address: str


@dataclass(frozen=True, slots=True)
class MasterWent:
    """Serve readers for as long as they like."""


@dataclass(frozen=True, slots=True)
class TakeOver:
    """This slave acts as the master from now on."""


@dataclass(frozen=True, slots=True)
class StepBack:
    """No longer."""


Instruction = MasterCame | MasterWent | TakeOver | StepBack


class GroupWatch:
    """The brokers of one name, as the slave ``own_address`` knows them."""

    def __init__(self, own_address: str) -> None:
        self._own_address = own_address
        self._master: str | None = None
        self.is_acting = False

    def saw(self, members: Mapping[int, str], own_id: int, *, is_slave: bool) -> list[Instruction]:
        """A name server has told who is there, by broker id.

        Args:
            own_id: the id of this broker now.
            is_slave: its role now.
        """
        master = members.get(MASTER_ID) if is_slave else None
        if master == self._own_address:
            # What this broker was before.
            master = None
        # A broker that the name server does not know cannot be the one that it lists.
        is_listed = members.get(own_id) == self._own_address
        acts = is_slave and is_listed and master is None and own_id == min(members)
        instructions: list[Instruction] = []
        if self.is_acting and not acts:
            instructions.append(StepBack())
        if master != self._master:
            instructions.append(MasterWent() if master is None else MasterCame(master))
        if acts and not self.is_acting:
            instructions.append(TakeOver())
        self._master = master
        self.is_acting = acts
        return instructions

    def __repr__(self) -> str:
        state = "acting" if self.is_acting else f"master={self._master}"
        return f"<GroupWatch {self._own_address} {state}>"
