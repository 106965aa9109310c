"""Distributes the queues of a topic among the clients of a group.

Every client computes this on its own and must get the same result, so queues and client ids are sorted first.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cometmq.base.errors import UsageError
from cometmq.model.message_queue import MessageQueue

VIRTUAL_NODES: Final = 10

Strategy = Callable[[Sequence[MessageQueue], Sequence[str], int], list[MessageQueue]]
"""Sorted queues, sorted client ids, and the index of the client whose queues are wanted."""


def allocate(
    strategy: str, client_id: str, queues: Iterable[MessageQueue], client_ids: Iterable[str]
) -> list[MessageQueue] | None:
    """The queues of one client; empty if it is not among ``client_ids``. None for an unknown strategy."""
    share = STRATEGIES.get(strategy)
    if share is None:
        return None
    clients = sorted(client_ids)
    if client_id not in clients:
        return []
    return share(sorted(queues), clients, clients.index(client_id))


def _average(queues: Sequence[MessageQueue], clients: Sequence[str], me: int) -> list[MessageQueue]:
    """Consecutive queues in blocks; the first blocks are one longer if the division leaves a remainder."""
    size, rest = divmod(len(queues), len(clients))
    start = me * size + min(me, rest)
    return list(queues[start : start + size + (me < rest)])


def _circle(queues: Sequence[MessageQueue], clients: Sequence[str], me: int) -> list[MessageQueue]:
    """Round robin."""
    return list(queues[me :: len(clients)])


def _consistent_hash(
    queues: Sequence[MessageQueue], clients: Sequence[str], me: int
) -> list[MessageQueue]:
    """A queue goes to the next client on a ring of hashes, so that few queues move when a client joins or leaves."""
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


def fixed(queues: Iterable[MessageQueue]) -> Strategy:
    """CONFIG: these queues, whoever the other clients are. Queues that the topic does not have are left out."""
    chosen = frozenset(queues)

    def share(
        queues: Sequence[MessageQueue], clients: Sequence[str], me: int
    ) -> list[MessageQueue]:
        return [queue for queue in queues if queue in chosen]

    return share


def machine_room(rooms: Iterable[str]) -> Strategy:
    """MACHINE_ROOM: only queues of brokers named ``room@name`` in one of these rooms."""
    known = frozenset(rooms)

    def share(
        queues: Sequence[MessageQueue], clients: Sequence[str], me: int
    ) -> list[MessageQueue]:
        near = [queue for queue in queues if _room_of(queue.broker_name) in known]
        size, rest = divmod(len(near), len(clients))
        mine = near[me * size : me * size + size]
        # The remainder is dealt out from the end, one each.
        return mine + (near[me + size * len(clients) :][:1] if me < rest else [])

    return share


def machine_room_nearby(
    inner: Strategy,
    *,
    room_of_queue: Callable[[MessageQueue], str],
    room_of_client: Callable[[str], str],
) -> Strategy:
    """MACHINE_ROOM_NEARBY: each room's queues go to its own clients, or to all clients if it has none.

    Args:
        inner: how to share within a room.
        room_of_queue, room_of_client: the room, never empty; must be the same on all clients.
    """

    def share(
        queues: Sequence[MessageQueue], clients: Sequence[str], me: int
    ) -> list[MessageQueue]:
        rooms = {client: _named(room_of_client(client), client) for client in clients}
        queues_of: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            queues_of.setdefault(_named(room_of_queue(queue), str(queue)), []).append(queue)
        my_id = clients[me]
        neighbours = [client for client in clients if rooms[client] == rooms[my_id]]
        mine: list[MessageQueue] = []
        for room, near in queues_of.items():
            if room == rooms[my_id]:
                mine += inner(near, neighbours, neighbours.index(my_id))
            elif room not in rooms.values():
                mine += inner(near, clients, me)
        return mine

    return share


def _room_of(broker_name: str) -> str | None:
    room, separator, name = broker_name.partition("@")
    return room if separator and "@" not in name else None


def _named(room: str, what: str) -> str:
    if not room:
        raise UsageError(f"no machine room is known for {what}")
    return room


STRATEGIES: Final[dict[str, Strategy]] = {
    "AVG": _average,
    "AVG_BY_CIRCLE": _circle,
    "CONSISTENT_HASH": _consistent_hash,
}
"""The strategies that need only the two lists, by the names that clients send."""
