"""Which queues of a topic are this client's, and what that changes. No I/O.

Every client computes this alone from the same lists, so no two of them share a queue once all have seen the same
lists. Until then a queue may have two owners; ``previous_owner`` says whom a new owner should let finish first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from cometmq.base.errors import UsageError
from cometmq.model.allocation import STRATEGIES, Strategy
from cometmq.model.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class Plan:
    """First drop, then take: a queue in both is to be started anew."""

    drop: list[MessageQueue]
    take: list[MessageQueue]


def plan(
    mine: Iterable[MessageQueue],
    held: Iterable[MessageQueue],
    stuck: Collection[MessageQueue] = (),
) -> Plan:
    """What to change so that exactly ``mine`` are held, those that are stuck started anew."""
    wanted, present = set(mine), set(held)
    restarted = present & wanted & set(stuck)
    return Plan(
        drop=sorted((present - wanted) | restarted),
        take=sorted((wanted - present) | restarted),
    )


def find_strategy(strategy: str | Strategy) -> Strategy:
    """Raises UsageError for an unknown name."""
    if not isinstance(strategy, str):
        return strategy
    found = STRATEGIES.get(strategy)
    if found is None:
        raise UsageError(
            f"unknown allocation strategy {strategy!r}; expected one of "
            f"{', '.join(sorted(STRATEGIES))}, or a function"
        )
    return found


def share_of(
    strategy: Strategy, client_id: str, queues: Iterable[MessageQueue], client_ids: Iterable[str]
) -> list[MessageQueue]:
    """The queues of one client; nothing for one that is not listed.

    Raises:
        UsageError: a strategy of the user's own named a queue that the topic does not have.
    """
    clients = sorted(set(client_ids))
    if client_id not in clients:
        return []
    ordered = sorted(queues)
    share = list(strategy(ordered, clients, clients.index(client_id)))
    strangers = set(share) - set(ordered)
    if strangers:
        raise UsageError(f"the allocation strategy chose queues that are not there: {strangers}")
    return share


def previous_owner(
    strategy: Strategy,
    queue: MessageQueue,
    queues: Sequence[MessageQueue],
    previous_ids: Iterable[str],
) -> str | None:
    """Who held a queue while the group had these clients."""
    clients = sorted(set(previous_ids))
    for client in clients:
        if queue in share_of(strategy, client, queues, clients):
            return client
    return None
