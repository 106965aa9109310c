"""A store of decisions in memory. A test may let others swap first, or have it fail."""

from __future__ import annotations

from collections.abc import Mapping

from cometmq.base.errors import StoreError
from cometmq.controller.decision_store import NEVER_STORED, Held
from cometmq.controller.group import Group


class MemoryStore:
    def __init__(self) -> None:
        self.held: dict[str, Held] = {}
        self.first: list[Group] = []
        """What others swap in, one before each swap of ours."""
        self.is_broken = False

    def known(self) -> Mapping[str, Held]:
        return self.held

    async def read(self, broker_name: str) -> Held | None:
        self._check()
        return self.held.get(broker_name)

    async def swap(self, broker_name: str, seen: int, group: Group) -> bool:
        self._check()
        if self.first:
            self.put(self.first.pop(0))
        held = self.held.get(broker_name)
        version = NEVER_STORED if held is None else held.version
        if seen != version:
            return False
        self.held[broker_name] = Held(group, version + 1)
        return True

    def put(self, group: Group) -> None:
        held = self.held.get(group.broker_name)
        self.held[group.broker_name] = Held(group, 1 if held is None else held.version + 1)

    def _check(self) -> None:
        if self.is_broken:
            raise StoreError("no quorum")
