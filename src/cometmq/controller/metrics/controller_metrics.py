"""Metrics and health of a controller. RocketMQ's names have no prefix here; ours have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Final

from cometmq.controller.decision_store import DecisionStore
from cometmq.controller.election import Verdict
from cometmq.controller.liveness import Liveness
from cometmq.controller.peers import Roster
from cometmq.monitor.family import (
    Family,
    Histogram,
    LabelValues,
    Value,
    counter,
    gauge,
    histogram,
    single,
)
from cometmq.monitor.health import Health
from cometmq.monitor.loop_lag import LoopLag
from cometmq.monitor.metrics import Ready
from cometmq.monitor.monitor import process_families
from cometmq.monitor.request_families import request_families
from cometmq.protocol.codes import ResponseCode
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.times.request_times import EDGES_SECONDS, RequestTimes, request_name

SCOPE: Final = "controller"
_LEADER: Final = 3.0
_FOLLOWER: Final = 2.0
_EDGES_MICROS: Final = tuple(round(edge * 1e6) for edge in EDGES_SECONDS)
_RESULTS: Final = {
    Verdict.ELECTED: "new_master_elected",
    Verdict.STILL_MASTER: "keep_current_master",
    Verdict.NO_CANDIDATE: "no_master_elected",
}


class ControllerMetrics:
    def __init__(
        self,
        *,
        store: DecisionStore,
        liveness: Liveness,
        roster: Callable[[], Roster],
        times: RequestTimes,
        reached: Reached,
        elections: Counter[Verdict],
        now: Callable[[], float],
    ) -> None:
        self._store = store
        self._liveness = liveness
        self._roster = roster
        self._times = times
        self._elections = elections
        self._now = now
        started = monotonic()
        self.source = Ready(
            *self._families(),
            *request_families(times),
            *process_families(reached, lambda: monotonic() - started),
        )

    def _families(self) -> tuple[Family, ...]:
        return (
            gauge("role", (), single(lambda: _LEADER if self._roster().is_leader else _FOLLOWER)),
            gauge("active_broker_num", ("broker_set", "cluster"), self._active),
            counter("request_total", ("request_handle_status", "request_type"), self._requests),
            histogram("request_latency", ("request_type",), self._latencies, unit="us"),
            counter(
                "election_total",
                ("election_result",),
                lambda: [
                    ((_RESULTS[verdict],), float(count))
                    for verdict, count in self._elections.items()
                ],
            ),
            gauge(
                "cometmq_controller_groups",
                (),
                single(lambda: float(len(self._store.known()))),
                text="Broker groups that decisions are kept of",
            ),
            gauge(
                "cometmq_controller_groups_without_master",
                (),
                single(self._without_master),
                text="Broker groups that have no master, or none that is alive",
            ),
        )

    def _active(self) -> Iterator[tuple[LabelValues, Value]]:
        now = self._now()
        for name, held in sorted(self._store.known().items()):
            alive = len(self._liveness.living(held.group, now).reports)
            yield (name, held.group.cluster), float(alive)

    def _without_master(self) -> float:
        now = self._now()
        lost = 0
        for held in self._store.known().values():
            group = held.group
            lost += group.master_id not in self._liveness.living(group, now).reports
        return float(lost)

    def _requests(self) -> list[tuple[LabelValues, Value]]:
        found: Counter[LabelValues] = Counter()
        for outcome, one in self._times.table.items():
            status = "success" if outcome.answer == ResponseCode.SUCCESS else "failed"
            found[status, request_name(outcome.code)] += sum(one.counts)
        return [(labels, float(count)) for labels, count in found.items()]

    def _latencies(self) -> list[tuple[LabelValues, Value]]:
        found: dict[LabelValues, Histogram] = {}
        for outcome, one in self._times.table.items():
            shown = Histogram(_EDGES_MICROS)
            shown.counts, shown.sum = list(one.counts), one.seconds * 1e6
            found.setdefault((request_name(outcome.code),), Histogram(_EDGES_MICROS)).merge(shown)
        return list(found.items())


def controller_health(lag: LoopLag, store_fault: Callable[[], str | None]) -> Health:
    return Health(alive={"loop": lag.check}, ready={"decisions": store_fault})
