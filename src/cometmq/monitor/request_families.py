"""Metrics of requests, the same for every server: how long they took, which were refused and why, which were slow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cometmq.monitor.family import Family, Histogram, LabelValues, Value, counter, histogram, single
from cometmq.remoting.times.request_times import (
    EDGES_SECONDS,
    RequestTimes,
    answer_name,
    request_name,
)

_EDGES_MS: Final = tuple(round(edge * 1000, 3) for edge in EDGES_SECONDS)


def request_families(times: RequestTimes) -> tuple[Family, ...]:
    def latencies() -> Iterator[tuple[LabelValues, Value]]:
        for outcome, one in list(times.table.items()):
            shown = Histogram(_EDGES_MS)
            shown.counts = list(one.counts)
            shown.sum = one.seconds * 1000
            labels = (
                str(outcome.is_long_polling).lower(),
                "remoting",
                request_name(outcome.code),
                answer_name(outcome.answer),
                "success",
            )
            yield labels, shown

    def refusals() -> list[tuple[LabelValues, Value]]:
        return [
            ((reason, request_name(code)), float(count))
            for (code, reason), count in times.refused.items()
        ]

    return (
        histogram(
            "rocketmq_rpc_latency",
            ("is_long_polling", "protocol_type", "request_code", "response_code", "result"),
            latencies,
            unit="milliseconds",
            text="Rpc latency",
        ),
        counter(
            "cometmq_requests_refused_total",
            ("reason", "request_code"),
            refusals,
            text="Requests refused, by the bound that was reached or the code of the answer",
        ),
        counter(
            "cometmq_slow_requests_total",
            (),
            single(lambda: float(times.slow_count)),
            text="Requests that took slowRequestMillis or more",
        ),
    )
