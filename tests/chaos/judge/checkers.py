"""What a history says about the promises: each check returns its violations as sentences."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final

from tests.chaos.judge.history import (
    ACKNOWLEDGED,
    COMMITTED,
    FAILED,
    ROLLED_BACK,
    History,
    Queue,
    Send,
)

ORDERED: Final = "ordered"
"""The workload whose order counts; its ids are ``workload/key/number``."""
TRANSACTIONS: Final = "transactions"
PROBES: Final = "probes"
"""The workload that asks every broker whether it takes messages. Nobody consumes it."""
EARLY_SECONDS: Final = 0.1
"""A broker's clock has milliseconds, and its delivery times are rounded."""


def acknowledged(history: History) -> dict[str, Send]:
    """What has to be delivered, by id."""
    return {
        send.id: send
        for send in history.sends
        if send.status == ACKNOWLEDGED and send.fate == COMMITTED and send.id not in history.damaged
    }


def lost(history: History) -> list[str]:
    came = {delivery.id for delivery in history.deliveries if delivery.is_intact}
    return [
        f"{id} was acknowledged at {send.ended:.2f} s as {send.queue}/{send.offset} and never came"
        for id, send in acknowledged(history).items()
        if id not in came and send.workload != PROBES
    ]


def missing_sends(history: History) -> list[Send]:
    return [
        send
        for id, send in acknowledged(history).items()
        if send.workload in history.stored and id not in history.stored[send.workload]
    ]


def missing(history: History) -> list[str]:
    return [
        f"{send.id} was acknowledged at {send.ended:.2f} s as {send.queue}/{send.offset} and is in no log"
        for send in missing_sends(history)
    ]


def gone(history: History) -> set[str]:
    """Ids that are lost, or missing: who has read them before the log lost them does not make it good for a group that
    reads later."""
    came = {delivery.id for delivery in history.deliveries if delivery.is_intact}
    return {
        id
        for id, send in acknowledged(history).items()
        if (id not in came and send.workload != PROBES)
        or id not in history.stored.get(send.workload, {id})
    }


def altered(history: History) -> list[str]:
    return [
        f"{delivery.queue}/{delivery.offset} came at {delivery.at:.2f} s with another body"
        for delivery in history.deliveries
        if not delivery.is_intact
    ]


def phantom(history: History) -> list[str]:
    sent = {send.id for send in history.sends}
    rolled_back = {send.id for send in history.sends if send.fate == ROLLED_BACK}
    wrong = []
    for delivery in history.deliveries:
        if delivery.is_intact and delivery.id not in sent:
            wrong.append(f"{delivery.id} came at {delivery.at:.2f} s and was never sent")
        elif delivery.is_intact and delivery.id in rolled_back:
            wrong.append(f"{delivery.id} came at {delivery.at:.2f} s and was rolled back")
    return wrong


def duplicated(history: History) -> list[str]:
    times = Counter(delivery.id for delivery in history.deliveries if delivery.is_intact)
    return [f"{id} came {count} times" for id, count in times.items() if count > 1]


def reordered(history: History) -> list[str]:
    """Of one key in one queue: a key changes its queue while a broker is gone, and between two there is no order."""
    highest: dict[tuple[str, Queue], int] = defaultdict(lambda: -1)
    seen: set[tuple[str, Queue]] = set()
    wrong = []
    for delivery in history.deliveries:
        if delivery.workload != ORDERED or not delivery.is_intact:
            continue
        # Who reads a queue again after a crash is given old messages anew: only the first time counts.
        if (delivery.id, delivery.queue) in seen:
            continue
        seen.add((delivery.id, delivery.queue))
        key, _, number = delivery.id.rpartition("/")
        before = highest[key, delivery.queue]
        if int(number) < before:
            wrong.append(f"{delivery.id} came at {delivery.at:.2f} s, after number {before}")
        highest[key, delivery.queue] = max(before, int(number))
    return wrong


def early(history: History) -> list[str]:
    due = {send.id: send.due for send in history.sends if send.due}
    return [
        f"{delivery.id} came {due[delivery.id] - delivery.at:.2f} s before its time"
        for delivery in history.deliveries
        if delivery.at < due.get(delivery.id, 0.0) - EARLY_SECONDS
    ]


def offset_back(history: History) -> list[str]:
    reached: dict[Queue, int] = {}
    wrong = []
    for position in history.positions:
        before = reached.get(position.queue, -1)
        if position.is_read and position.offset < before:
            wrong.append(
                f"{position.queue} was at {before}, and at {position.offset} at {position.at:.2f} s"
            )
        # Counted once: from here on the lower one is where the group is.
        reached[position.queue] = (
            position.offset if position.is_read else max(before, position.offset)
        )
    return wrong


def diverged(history: History) -> list[str]:
    return history.diverged


def unexpected(history: History) -> list[str]:
    return history.unexpected


def sent_counts(history: History) -> dict[str, int]:
    """How many sends ended how. Most probes are refused, as they should be."""
    statuses = Counter(send.status for send in history.sends if send.workload != PROBES)
    return {ACKNOWLEDGED: 0, FAILED: 0, **statuses}
