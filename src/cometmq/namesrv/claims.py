"""Whose name, id or address a registration claims, and whether that one is alive and keeps it.

Without accounts anybody who reaches a name server can register as a broker that exists and so take its clients. Hence a
process keeps its place as long as it is alive on the connection that it registered over: it was heard of within ten
seconds, or it answers when asked (brokers of RocketMQ 4 are silent for 30 s at a time). Under a controller the higher
epoch wins, as a fail-over needs it.

Pure: the caller brings the time, and asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cometmq.namesrv.liveness import LiveBroker
from cometmq.namesrv.registration import Registration
from cometmq.namesrv.route_table import RouteTable

ANSWER_SECONDS: Final = 10.0


def claimed(table: RouteTable, r: Registration) -> Iterator[LiveBroker]:
    """Processes that a registration would push aside, and that have a say in it."""
    for owner in table.holders(r.broker_name, r.cluster, r.address):
        is_same_id = owner.is_same(r.broker_name, r.broker_id)
        is_there = owner.address == r.address
        if not owner.connections or owner.connections[0] is r.connection:
            continue
        if is_same_id and is_there and owner.cluster == r.cluster:
            # It has reconnected, or somebody says so: then nothing may depend on it that was not so before.
            is_claim = owner.epoch != r.epoch and not r.epoch > owner.epoch > 0
        elif is_same_id and not is_there:
            # A lower epoch is left to the table, which ignores it as RocketMQ does.
            is_claim = owner.epoch <= r.epoch and not r.epoch > owner.epoch > 0
        else:
            is_claim = is_there
        if is_claim:
            yield owner


def keeps_place(owner: LiveBroker, now: float) -> bool:
    """Whether it was heard of lately, or still has time to answer."""
    return max(owner.heard_at, owner.asked_at) + ANSWER_SECONDS > now


def is_to_be_asked(owner: LiveBroker, now: float) -> bool:
    """Whether it is silent and was not asked since."""
    return owner.heard_at + ANSWER_SECONDS <= now and owner.asked_at <= owner.heard_at
