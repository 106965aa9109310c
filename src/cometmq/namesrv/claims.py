"""Whose name, id or address a registration claims, and whether that broker is alive and keeps it.

Without accounts, anyone who reaches a name server can register as an existing broker and so take its clients. Hence a
process keeps its place as long as it is alive on the connection that it registered over: it was heard from within ten
seconds, or it answers a probe (RocketMQ 4 brokers are silent for 30 s at a time). Under a controller the higher epoch
wins, because a fail-over needs that.

No I/O: the caller passes the time, and does the probing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cometmq.namesrv.liveness import LiveBroker
from cometmq.namesrv.registration import Registration
from cometmq.namesrv.route_table import RouteTable

ANSWER_SECONDS: Final = 10.0


def claimed(table: RouteTable, r: Registration) -> Iterator[LiveBroker]:
    """Processes that a registration would displace, and that may object."""
    for owner in table.holders(r.broker_name, r.cluster, r.address):
        is_same_id = owner.is_same(r.broker_name, r.broker_id)
        is_there = owner.address == r.address
        if not owner.connections or owner.connections[0] is r.connection:
            continue
        if is_same_id and is_there and owner.cluster == r.cluster:
            # It has reconnected, or somebody claims so. Then the registration must not gain anything new.
            is_claim = owner.epoch != r.epoch and not r.epoch > owner.epoch > 0
        elif is_same_id and not is_there:
            # A lower epoch is left to the table, which ignores it as RocketMQ does.
            is_claim = owner.epoch <= r.epoch and not r.epoch > owner.epoch > 0
        else:
            is_claim = is_there
        if is_claim:
            yield owner


def keeps_place(owner: LiveBroker, now: float) -> bool:
    """Whether it was heard from lately, or still has time to answer."""
    return max(owner.heard_at, owner.asked_at) + ANSWER_SECONDS > now


def is_to_be_asked(owner: LiveBroker, now: float) -> bool:
    """Whether it is silent and has not been probed since."""
    return owner.heard_at + ANSWER_SECONDS <= now and owner.asked_at <= owner.heard_at
