"""The figures of one round, by series, from a snapshot. No I/O and no time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from cometmq.dashboard.watch.known import Fill
from cometmq.dashboard.watch.snapshot import DEAD_LETTER, BrokerState, Snapshot
from cometmq.dashboard.watch.sweep import Found

LOG_END = "commitLogMaxOffset"


class Statuses(Protocol):
    def get(self, name: str) -> Found[Fill | None] | None: ...


def figures_of(
    snapshot: Snapshot,
    rates: Mapping[str, float],
    lag_ages: Mapping[str, int],
    letters: Mapping[str, int],
) -> dict[str, float]:
    """Series by name, as ``HistorySeries`` explains them."""
    values: dict[str, float] = {
        "put_tps": 0.0,
        "get_tps": 0.0,
        "disk_ratio": 0.0,
        "lag": float(sum(group.lag for group in snapshot.groups.values())),
        "dead_letters": float(sum(letters.values())),
    }
    for one in snapshot.brokers:
        if one.figures is None or one.silent_since_ms is not None:
            continue
        name = series_name(one)
        values[f"broker:{name}:put_tps"] = one.figures.put_tps
        values[f"broker:{name}:get_tps"] = one.figures.get_tps
        values[f"broker:{name}:disk_ratio"] = one.figures.disk_ratio
        values["disk_ratio"] = max(values["disk_ratio"], one.figures.disk_ratio)
        if one.place.is_master:
            values["put_tps"] += one.figures.put_tps
            values["get_tps"] += one.figures.get_tps
        else:
            behind = slave_lag(snapshot, one)
            if behind is not None:
                values[f"broker:{name}:slave_lag"] = float(behind)
    for group, state in snapshot.groups.items():
        if state.topics:
            values[f"group:{group}:lag"] = float(state.lag)
            values[f"group:{group}:lag_ms"] = float(lag_ages.get(group, 0))
            values[f"group:{group}:tps"] = state.tps
    for topic, rate in rates.items():
        values[f"topic:{topic}:tps"] = rate
    for topic, count in letters.items():
        values[f"topic:{topic}:messages"] = float(count)
    return values


def series_name(broker: BrokerState) -> str:
    """Of a master its name; of a slave with its id."""
    place = broker.place
    return place.broker_name if place.is_master else f"{place.broker_name}:{place.broker_id}"


def slave_lag(snapshot: Snapshot, slave: BrokerState) -> int | None:
    """Bytes of its master's log that it does not have, as of the same round; None if either does not tell."""
    master = snapshot.broker(slave.place.broker_name, 0)
    if master is None or master.figures is None or slave.figures is None:
        return None
    if LOG_END not in master.figures.table or LOG_END not in slave.figures.table:
        return None
    return max(master.figures.number(LOG_END) - slave.figures.number(LOG_END), 0)


def lag_ages(snapshot: Snapshot, behind_since: Mapping[str, int]) -> dict[str, int]:
    """How old what comes next for a group is, at most.

    The next message came after the last consumed one, and after the moment at which the group was last seen with
    nothing to do (0: never since the start): the later of the two counts.
    """
    ages: dict[str, int] = {}
    for name, group in snapshot.groups.items():
        if group.lag > 0:
            since = max(behind_since.get(name, 0), group.consumed_ms or 0)
            if since:
                ages[name] = max(snapshot.at_ms - since, 0)
    return ages


def dead_letters(snapshot: Snapshot, statuses: Statuses) -> dict[str, int]:
    """How many there are, by topic, as far as it is known."""
    counts: dict[str, int] = {}
    for topic in snapshot.topics:
        if snapshot.kind_of(topic) == DEAD_LETTER:
            found = statuses.get(topic)
            if found is not None and found.value is not None:
                counts[topic] = found.value.message_count
    return counts
