"""Who may consume a queue in order: one client of a group at a time, for as long as it keeps asking.

State of one queue: free -> held by a client -> free again when given up or 60 s after the last renewal.
Owned by the event loop; no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cometmq.base.ports import Clock
from cometmq.model.message_queue import MessageQueue

HOLD_SECONDS: Final = 60.0
LOCKS_MAX: Final = 1_000_000
"""Bound on locks held at once; beyond it no new one is granted."""


class QueueLocks:
    def __init__(self, clock: Clock, *, hold_seconds: float = HOLD_SECONDS) -> None:
        self._clock = clock
        self._hold_seconds = hold_seconds
        self._groups: dict[str, dict[MessageQueue, tuple[str, float]]] = {}
        self._count = 0

    def lock(
        self, group: str, client_id: str, queues: Iterable[MessageQueue]
    ) -> list[MessageQueue]:
        """Take or renew the locks; those the client holds now are returned."""
        now = self._clock.monotonic()
        held = self._groups.setdefault(group, {})
        granted: list[MessageQueue] = []
        for queue in queues:
            entry = held.get(queue)
            if entry is None:
                if self._count >= LOCKS_MAX:
                    continue
                self._count += 1
            elif entry[0] != client_id and now - entry[1] <= self._hold_seconds:
                continue
            held[queue] = (client_id, now)
            granted.append(queue)
        if not held:
            del self._groups[group]
        return granted

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Give up the locks; those of other clients stay."""
        held = self._groups.get(group, {})
        for queue in queues:
            entry = held.get(queue)
            if entry is not None and entry[0] == client_id:
                del held[queue]
                self._count -= 1
        if not held:
            self._groups.pop(group, None)

    def holder(self, group: str, queue: MessageQueue) -> str | None:
        """The client that holds a queue now."""
        entry = self._groups.get(group, {}).get(queue)
        if entry is None or self._clock.monotonic() - entry[1] > self._hold_seconds:
            return None
        return entry[0]

    def expire(self) -> None:
        """Forget locks nobody renewed; call from time to time, correctness does not depend on it."""
        oldest = self._clock.monotonic() - self._hold_seconds
        for group, held in list(self._groups.items()):
            for queue in [queue for queue, entry in held.items() if entry[1] < oldest]:
                del held[queue]
                self._count -= 1
            if not held:
                del self._groups[group]

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<QueueLocks {self._count} queues of {len(self._groups)} groups>"
