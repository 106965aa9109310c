"""Sharing the queues of a topic out among the clients of a group.

Everybody computes this alone and must come to the same result, so queues and client ids are sorted first.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cometmq.model.message_queue import MessageQueue

VIRTUAL_NODES: Final = 10

Strategy = Callable[[Sequence[MessageQueue], Sequence[str], int], list[MessageQueue]]
"""Sorted queues, sorted client ids, and the index of the one whose queues are wanted."""


def allocate(
    strategy: str, client_id: str, queues: Iterable[MessageQueue], client_ids: Iterable[str]
) -> list[MessageQueue] | None:
    """The queues of one client; nothing when it is not among ``client_ids``. None for an unknown strategy."""
    share = STRATEGIES.get(strategy)
    if share is None:
        return None
    clients = sorted(client_ids)
    if client_id not in clients:
        return []
    return share(sorted(queues), clients, clients.index(client_id))


def _average(queues: Sequence[MessageQueue], clients: Sequence[str], me: int) -> list[MessageQueue]:
    """Neighbouring queues in blocks, the first blocks one longer where it does not come out even."""
    size, rest = divmod(len(queues), len(clients))
    start = me * size + min(me, rest)
    return list(queues[start : start + size + (me < rest)])


def _circle(queues: Sequence[MessageQueue], clients: Sequence[str], me: int) -> list[MessageQueue]:
    """Dealt out like cards."""
    return list(queues[me :: len(clients)])


def _consistent_hash(
    queues: Sequence[MessageQueue], clients: Sequence[str], me: int
) -> list[MessageQueue]:
    """A queue goes to the next client on a ring of hashes, so that few queues move when a client comes or goes."""
    ring = sorted(
        (_ring_position(f"{client}-{node}"), index)
        for index, client in enumerate(clients)
        for node in range(VIRTUAL_NODES)
    )
    positions = [position for position, _ in ring]

    def owner(queue: MessageQueue) -> int:
        return ring[bisect_left(positions, _ring_position(str(queue))) % len(ring)][1]

    return [queue for queue in queues if owner(queue) == me]


def _ring_position(text: str) -> int:
    digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


STRATEGIES: Final[dict[str, Strategy]] = {
    "AVG": _average,
    "AVG_BY_CIRCLE": _circle,
    "CONSISTENT_HASH": _consistent_hash,
}
"""By the names that clients send."""
