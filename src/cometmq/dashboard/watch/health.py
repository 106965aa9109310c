"""What is wrong at a site, as its last round tells. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from cometmq.dashboard.bodies.common import Note
from cometmq.dashboard.watch.figures import dead_letters, slave_lag
from cometmq.dashboard.watch.notes import ERROR, INFO, WARNING, note, page_of, worst_first
from cometmq.dashboard.watch.site import Site
from cometmq.dashboard.watch.snapshot import NORMAL, BrokerState, Snapshot

PROBLEMS_MAX: Final = 50
DISK_WARNING: Final = 0.75
DISK_ERROR: Final = 0.9
SLAVE_BYTES: Final = 64 * 1024 * 1024
DAY_MS: Final = 24 * 3600 * 1000
CERTIFICATE_MS: Final = 14 * DAY_MS
BEHIND_MS: Final = 10 * 60_000


def problems_of(site: Site) -> list[Note]:
    """Worst first; what is beyond a bound is counted."""
    snapshot = site.snapshot
    everything = chain(
        _servers(site, snapshot),
        _disks(snapshot),
        _certificates(site, snapshot),
        _replicas(snapshot),
        _groups(site, snapshot),
        _letters(site, snapshot),
        _topics(snapshot),
    )
    found, left = worst_first(everything, PROBLEMS_MAX)
    if left:
        found.append(note(INFO, "more", "#/", snapshot.at_ms, count=left))
    return found


def health_of(problems: list[Note]) -> str:
    """good, warning or bad."""
    severities = {one.severity for one in problems}
    return "bad" if ERROR in severities else "warning" if WARNING in severities else "good"


def is_behind(snapshot: Snapshot, replica: BrokerState) -> bool:
    """Whether it is no full copy, as far as is known."""
    if replica.silent_since_ms is not None or replica.in_sync is False:
        return True
    lacks = slave_lag(snapshot, replica)
    return lacks is not None and lacks >= SLAVE_BYTES


def _servers(site: Site, snapshot: Snapshot) -> Iterator[Note]:
    lost = site.rounds.lost
    if lost is not None:
        since_ms, problem = lost
        yield note(ERROR, "name_server_silent", "#/cluster", since_ms, problem=problem)
    elif snapshot.at_ms and not snapshot.brokers:
        yield note(ERROR, "no_broker", "#/cluster", snapshot.at_ms)
    for one in snapshot.brokers:
        if one.silent_since_ms is None:
            continue
        place, since_ms = one.place, one.silent_since_ms
        if place.is_master:
            yield note(
                ERROR,
                "broker_silent",
                _page(one),
                since_ms,
                broker=place.broker_name,
                problem=one.problem,
            )
        else:
            yield note(
                WARNING,
                "slave_silent",
                _page(one),
                since_ms,
                broker=place.broker_name,
                broker_id=place.broker_id,
                problem=one.problem,
            )


def _disks(snapshot: Snapshot) -> Iterator[Note]:
    for one in snapshot.brokers:
        ratio = one.figures.disk_ratio if one.figures else 0.0
        if ratio >= DISK_WARNING:
            severity = ERROR if ratio >= DISK_ERROR else WARNING
            name = one.place.broker_name
            yield note(
                severity, "disk_full", _page(one), snapshot.at_ms, broker=name, disk_ratio=ratio
            )


def _certificates(site: Site, snapshot: Snapshot) -> Iterator[Note]:
    for name, end_ms in site.certificates.ends.items():
        left_ms = end_ms - snapshot.at_ms
        if left_ms <= 0:
            yield note(ERROR, "certificate_ended", "#/cluster", end_ms, server=name)
        elif left_ms <= CERTIFICATE_MS:
            yield note(
                WARNING,
                "certificate_ends",
                "#/cluster",
                snapshot.at_ms,
                server=name,
                days=left_ms // DAY_MS,
            )


def _replicas(snapshot: Snapshot) -> Iterator[Note]:
    for one in snapshot.brokers:
        if one.place.is_master or one.silent_since_ms is not None:
            continue
        behind = slave_lag(snapshot, one)
        place = one.place
        names = {"broker": place.broker_name, "broker_id": place.broker_id}
        if behind is not None and behind >= SLAVE_BYTES:
            yield note(
                WARNING, "slave_behind", _page(one), snapshot.at_ms, **names, lag_bytes=behind
            )
        if one.in_sync is False:
            yield note(WARNING, "not_in_sync", _page(one), snapshot.at_ms, **names)


def _groups(site: Site, snapshot: Snapshot) -> Iterator[Note]:
    for name, group in snapshot.groups.items():
        members = site.members.get(name)
        if members is not None and members.value.mismatched:
            yield note(
                WARNING,
                "subscriptions_differ",
                page_of("groups", name),
                members.at_ms,
                group=name,
                topics=", ".join(members.value.mismatched),
            )
        if group.lag <= 0:
            continue
        age = site.lag_ages.get(name)
        since_ms = snapshot.at_ms - (age or 0)
        if members is not None and not members.value.count:
            yield note(
                WARNING,
                "group_offline",
                page_of("groups", name),
                since_ms,
                group=name,
                lag=group.lag,
            )
        elif age is not None and age >= BEHIND_MS:
            yield note(
                WARNING,
                "group_behind",
                page_of("groups", name),
                since_ms,
                group=name,
                lag=group.lag,
                lag_ms=age,
            )


def _letters(site: Site, snapshot: Snapshot) -> Iterator[Note]:
    for topic in dead_letters(snapshot, site.status):
        trend = site.trends.of(f"topic:{topic}:messages")
        if len(trend) > 1 and trend[-1] > trend[0]:
            group = topic.removeprefix("%DLQ%")
            count = int(trend[-1] - trend[0])
            page = page_of("dead-letters", group)
            yield note(WARNING, "dead_letters_grew", page, snapshot.at_ms, group=group, count=count)


def _topics(snapshot: Snapshot) -> Iterator[Note]:
    for name, topic in snapshot.topics.items():
        if snapshot.kind_of(name) != NORMAL:
            continue
        shapes = {
            (one.perm, one.read_queue_nums, one.write_queue_nums)
            for one in topic.by_broker.values()
        }
        if len(shapes) > 1:
            yield note(
                INFO, "definitions_differ", page_of("topics", name), snapshot.at_ms, topic=name
            )


def _page(broker: BrokerState) -> str:
    return f"{page_of('brokers', broker.place.broker_name)}/{broker.place.broker_id}"
