"""Families as Prometheus and OpenMetrics read them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cometmq.monitor.family import (
    Family,
    Histogram,
    LabelValues,
    Value,
    bounded,
    counter,
    gauge,
    histogram,
    single,
)
from cometmq.monitor.text_page import PORTION_LINES, portions

COMMON = {"cluster": "C", "node_id": "b"}


def page(
    *families: Family,
    series_max: int = 100,
    is_open_metrics: bool = False,
    common: dict[str, str] | None = None,
) -> list[str]:
    common = COMMON if common is None else common
    parts = portions(families, common, series_max=series_max, is_open_metrics=is_open_metrics)
    return b"".join(parts).decode().splitlines()


def rows(count: int) -> list[tuple[LabelValues, Value]]:
    return [((str(number),), 1.0) for number in range(count)]


def test_a_counter_as_rocketmq_writes_it() -> None:
    family = counter(
        "rocketmq_messages_in_total",
        ("is_system", "message_type", "topic"),
        lambda: [(("false", "fifo", "GF"), 8.0)],
    )
    assert page(family) == [
        "# HELP rocketmq_messages_in_total default view for counter.",
        "# TYPE rocketmq_messages_in_total counter",
        'rocketmq_messages_in_total{cluster="C",is_system="false",message_type="fifo",node_id="b",topic="GF"} 8.0',
        "# TYPE target_info gauge",
        "target_info 1",
    ]


def test_a_histogram_counts_what_is_no_larger() -> None:
    times = Histogram((1.0, 10.0))
    for value in (1.0, 1.5, 10.0, 99.0):
        times.add(value)
    family = histogram("rpc_latency", (), lambda: [((), times)], unit="milliseconds", text="Rpc")
    assert page(family, common={})[:-2] == [
        "# HELP rpc_latency_milliseconds Rpc",
        "# TYPE rpc_latency_milliseconds histogram",
        'rpc_latency_milliseconds_bucket{le="1.0"} 1',
        'rpc_latency_milliseconds_bucket{le="10.0"} 3',
        'rpc_latency_milliseconds_bucket{le="+Inf"} 4',
        "rpc_latency_milliseconds_count{} 4",
        "rpc_latency_milliseconds_sum{} 111.5",
    ]


@pytest.mark.parametrize(
    ("family", "name"),
    [
        (gauge("a_latency", (), single(float), unit="milliseconds"), "a_latency_milliseconds"),
        (gauge("a_bytes", (), single(float), unit="bytes"), "a_bytes"),
        (counter("a", (), single(float)), "a_total"),
        (counter("a_total", (), single(float), unit="seconds"), "a_seconds_total"),
    ],
)
def test_unit_and_kind_become_part_of_the_name_once(family: Family, name: str) -> None:
    assert family.page_name == name


def test_open_metrics_names_counters_without_their_suffix_and_has_an_end() -> None:
    lines = page(
        counter("a_total", (), single(lambda: 2.0), text='says "so"'),
        gauge("b", (), single(lambda: 1.5), unit="seconds"),
        is_open_metrics=True,
        common={"x": "y"},
    )
    assert lines == [
        "# TYPE a counter",
        '# HELP a says \\"so\\"',
        'a_total{x="y"} 2.0',
        "# TYPE b_seconds gauge",
        "# UNIT b_seconds seconds",
        "# HELP b_seconds default view for gauge.",
        'b_seconds{x="y"} 1.5',
        "# TYPE target info",
        "target_info 1",
        "# EOF",
    ]


def test_no_value_breaks_out_of_its_line() -> None:
    family = gauge("a", ("topic",), lambda: [(('x"} 1\nb 2\\',), 1.0), (("\ud800",), float("nan"))])
    assert page(family, common={"l": '%s"'})[2:4] == [
        'a{l="%s\\"",topic="x\\"} 1\\nb 2\\\\"} 1.0',
        'a{l="%s\\"",topic="?"} NaN',
    ]


def test_a_family_without_series_is_left_out() -> None:
    assert page(gauge("a", ("topic",), list)) == ["# TYPE target_info gauge", "target_info 1"]


def test_a_long_page_comes_in_portions() -> None:
    family = gauge("a", ("n",), lambda: rows(5 * PORTION_LINES))
    parts = list(portions([family], {}, series_max=10 * PORTION_LINES))
    assert len(parts) > 5
    assert max(part.count(b"\n") for part in parts) <= PORTION_LINES + 2


def test_a_label_of_the_series_counts_more_than_one_of_the_operator() -> None:
    family = gauge("a", ("topic",), lambda: [(("T",), 1.0)])
    assert page(family, common={"topic": "mine"})[2] == 'a{topic="T"} 1.0'


class TestBound:
    def test_as_many_as_the_bound_are_told(self) -> None:
        assert len(list(bounded(gauge("a", ("n",), lambda: rows(5)), 5))) == 5

    def test_counters_beyond_it_are_summed_up(self) -> None:
        found = list(bounded(counter("a", ("n",), lambda: rows(9)), 5))
        assert found[-1] == (None, 5.0)
        assert len(found) == 5
        lines = page(counter("a", ("n",), lambda: rows(9)), series_max=5)
        assert lines[-3] == 'a_total{cluster="C",node_id="b",otel_metric_overflow="true"} 5.0'

    def test_so_are_histograms(self) -> None:
        def read() -> Iterator[tuple[LabelValues, Value]]:
            for number in range(9):
                one = Histogram((1.0,))
                one.add(number)
                yield (str(number),), one

        labels, merged = list(bounded(histogram("a", ("n",), read), 5))[-1]
        assert labels is None
        assert isinstance(merged, Histogram)
        assert (merged.count, merged.sum) == (5, 4.0 + 5 + 6 + 7 + 8)

    def test_gauges_are_left_out(self) -> None:
        assert len(list(bounded(gauge("a", ("n",), lambda: rows(9)), 5))) == 4
