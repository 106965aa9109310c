"""What a history says about elections: who reigned, whether two did at once, and how long nobody took messages."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tests.chaos.judge.checkers import PROBES, missing_sends
from tests.chaos.judge.history import ACKNOWLEDGED, History, Reign, Send

GAP_SECONDS: Final = 1.0
"""Acknowledgements are tens of milliseconds apart; what is shorter than this is a busy machine."""


class Election(NamedTuple):
    """As the first controller said it. ``master`` is an address."""

    at: float
    group: str
    epoch: int
    master: str


def elections(history: History) -> list[Election]:
    found: dict[tuple[str, int], Election] = {}
    for seen in history.sightings:
        if seen.is_controller and seen.master:
            election = Election(seen.at, seen.group, seen.epoch, seen.master)
            found.setdefault((seen.group, seen.epoch), election)
    return list(found.values())


def two_masters(history: History) -> list[str]:
    """An epoch has one master: controllers name no other, and only that one acknowledges. Where in the log a message
    was acknowledged tells of which epoch it is, whatever the broker believed."""
    named: dict[tuple[str, int], set[str]] = defaultdict(set)
    for seen in history.sightings:
        if seen.is_controller and seen.master:
            named[seen.group, seen.epoch].add(seen.master)
    acknowledged: dict[tuple[str, int], dict[str, Send]] = defaultdict(dict)
    for send in history.sends:
        if send.status != ACKNOWLEDGED or send.queue is None or send.position < 0:
            continue
        group = send.queue[0]
        epoch = epoch_at(history.reigns.get(group, ()), send.position)
        if epoch is not None:
            acknowledged[group, epoch].setdefault(send.broker, send)
    return [
        f"controllers name {' and '.join(sorted(masters))} as master of {group} in epoch {epoch}"
        for (group, epoch), masters in sorted(named.items())
        if len(masters) > 1
    ] + [
        f"epoch {epoch} of {group}: "
        + " and ".join(
            f"{broker} acknowledged {send.id} at {send.ended:.2f} s as {send.position}"
            for broker, send in sorted(firsts.items())
        )
        for (group, epoch), firsts in sorted(acknowledged.items())
        if len(firsts) > 1
    ]


def epoch_at(reigns: Sequence[Reign], position: int) -> int | None:
    """The epoch of what is at a position of a log; None before the first."""
    index = bisect_right([reign.start for reign in reigns], position) - 1
    return reigns[index].epoch if index >= 0 else None


def left_behind(history: History) -> list[str]:
    held = elections(history)
    wrong = []
    for send in missing_sends(history):
        group = send.queue[0] if send.queue else ""
        later = next((each for each in held if each.group == group and each.at > send.ended), None)
        if later is not None:
            wrong.append(
                f"{send.id} was acknowledged at {send.ended:.2f} s by {send.broker}, and is gone after the election of "
                f"{later.master} at {later.at:.2f} s (epoch {later.epoch})"
            )
    return wrong


def epoch_back(history: History) -> list[str]:
    highest: dict[tuple[str, str], int] = {}
    wrong = []
    for seen in history.sightings:
        place = seen.host, seen.group
        before = highest.get(place, seen.epoch)
        if seen.epoch < before:
            wrong.append(
                f"{seen.host} was in epoch {before} of {seen.group}, and in {seen.epoch} at {seen.at:.2f} s"
            )
        # Counted once: from here on the lower one is where it is.
        highest[place] = seen.epoch
    return wrong


def late(history: History) -> list[str]:
    return [
        f"{bound.what} at {bound.began:.2f} s: no send was acknowledged for {took:.1f} s, "
        f"promised are {bound.seconds:g} s at most"
        for bound in history.bounds
        if (took := stood_still(history.sends, bound.began, bound.ended)) > bound.seconds
    ]


def stood_still(sends: Iterable[Send], began: float, ended: float) -> float:
    """The longest time without an acknowledged send of a client that began in the course of a fault."""
    of_clients = [send for send in sends if send.workload != PROBES]
    times = sorted(send.ended for send in of_clients if send.status == ACKNOWLEDGED)
    times.append(max((send.ended for send in of_clients), default=began))
    longest, before = 0.0, began
    for time in times:
        if time > began:
            longest, before = max(longest, time - before), time
        if time > ended:
            break
    return round(longest, 2)


def sends_under(sends: Iterable[Send], began: float, ended: float) -> list[Send]:
    """What clients had under way in the course of a fault."""
    return [
        send
        for send in sends
        if send.workload != PROBES and send.began <= ended and send.ended >= began
    ]


def gaps(history: History, until: float) -> list[tuple[float, float]]:
    """When no broker of a group acknowledged anything, of clients or of probes: begin and end, from the first
    acknowledgement on."""
    by_group: dict[str, list[float]] = defaultdict(list)
    for send in history.sends:
        if send.status == ACKNOWLEDGED and send.queue is not None and send.ended <= until:
            by_group[send.queue[0]].append(send.ended)
    return sorted(
        (before, after)
        for times in by_group.values()
        for before, after in zip(sorted(times), [*sorted(times)[1:], until], strict=True)
        if after - before > GAP_SECONDS
    )
