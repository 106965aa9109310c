"""Families as OTLP: cumulative, as deltas, and over gRPC to a collector."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1 import (
    metrics_service_pb2,
    metrics_service_pb2_grpc,
)
from tests.eventually import eventually

from cometmq.base.errors import ConfigError
from cometmq.monitor.family import Family, Histogram, counter, gauge, histogram
from cometmq.monitor.metrics import Metrics, Ready
from cometmq.monitor.monitor_config import MonitorConfig
from cometmq.monitor.push.otlp import PORTION_POINTS, OtlpRound
from cometmq.monitor.push.otlp_grpc import NotExported, OtlpSender
from cometmq.monitor.push.pushing import Pushing

COUNTS = {"T": 5.0}
TIMES = Histogram((1.0, 10.0))


def families() -> list[Family]:
    return [
        counter(
            "rocketmq_messages_in_total", ("topic",), lambda: [((t,), c) for t, c in COUNTS.items()]
        ),
        gauge("rocketmq_storage_size", (), lambda: [((), 7.0)], unit="bytes"),
        histogram("rocketmq_rpc_latency", (), lambda: [((), TIMES)], unit="milliseconds"),
    ]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    COUNTS.clear()
    COUNTS["T"] = 5.0
    TIMES.counts = [1, 0, 2]
    TIMES.sum = 40.5


def a_round(*, is_delta: bool = False) -> OtlpRound:
    return OtlpRound(
        {"cluster": "C"}, scope="broker-meter", series_max=100, is_delta=is_delta, started_ns=1
    )


def test_totals_gauges_and_buckets() -> None:
    made = {one["name"]: one for one in a_round().metrics(families(), 9)}
    total = made["rocketmq_messages_in_total"]["sum"]
    assert (total["aggregationTemporality"], total["isMonotonic"]) == (2, True)
    [point] = total["dataPoints"]
    assert point == {
        "attributes": [
            {"key": "cluster", "value": {"stringValue": "C"}},
            {"key": "topic", "value": {"stringValue": "T"}},
        ],
        "startTimeUnixNano": "1",
        "timeUnixNano": "9",
        "asDouble": 5.0,
    }
    assert made["rocketmq_storage_size"]["unit"] == "By"
    [point] = made["rocketmq_rpc_latency"]["histogram"]["dataPoints"]
    assert (point["count"], point["sum"]) == ("3", 40.5)
    assert point["bucketCounts"] == ["1", "0", "2"]
    assert point["explicitBounds"] == [1.0, 10.0]


def test_deltas_tell_what_has_come_since() -> None:
    rounds = a_round(is_delta=True)
    list(rounds.metrics(families(), 9))
    COUNTS["T"] = 8.0
    COUNTS["U"] = 1.0
    made = {one["name"]: one for one in rounds.metrics(families(), 20)}
    points = made["rocketmq_messages_in_total"]["sum"]["dataPoints"]
    assert [point["asDouble"] for point in points] == [3.0, 1.0]
    assert {point["startTimeUnixNano"] for point in points} == {"9"}
    assert {"key": "aggregation", "value": {"stringValue": "delta"}} in points[0]["attributes"]
    # It has not moved, so it says nothing; a gauge is what it is.
    assert "rocketmq_rpc_latency" not in made
    assert made["rocketmq_storage_size"]["gauge"]["dataPoints"][0]["asDouble"] == 7.0


def test_many_series_come_in_portions() -> None:
    COUNTS.update({f"T{number}": 1.0 for number in range(2 * PORTION_POINTS)})
    rounds = OtlpRound({}, scope="s", series_max=10_000, is_delta=False, started_ns=1)
    made = [one for one in rounds.metrics(families(), 9) if "sum" in one]
    assert [len(one["sum"]["dataPoints"]) for one in made] == [PORTION_POINTS, PORTION_POINTS, 1]


class Collector(metrics_service_pb2_grpc.MetricsServiceServicer):  # type: ignore[misc]
    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.headers: dict[str, str] = {}
        self.rejected = 0

    def Export(self, request: Any, context: Any) -> Any:
        self.requests.append(request)
        self.headers = dict(context.invocation_metadata())
        reply = metrics_service_pb2.ExportMetricsServiceResponse()
        reply.partial_success.rejected_data_points = self.rejected
        return reply


@pytest.fixture
def collector() -> Iterator[tuple[Collector, str]]:
    server = grpc.server(futures.ThreadPoolExecutor(2))
    service = Collector()
    add: Any = metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server
    add(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield service, f"http://127.0.0.1:{port}"
    server.stop(None).wait()


def metrics() -> Metrics:
    return Metrics([Ready(*families())], common={"cluster": "C"}, series_max=100)


async def test_a_collector_gets_them_with_headers(collector: tuple[Collector, str]) -> None:
    service, target = collector
    config = MonitorConfig(
        exporter="OTLP_GRPC", target=target, headers="api-key:s3cret", interval_ms=100
    )
    pushing = Pushing(metrics(), config, "broker-meter")
    pushing.start()
    await eventually(lambda: service.requests or None)
    await pushing.stop()
    assert service.headers["api-key"] == "s3cret"
    [scope] = service.requests[0].resource_metrics[0].scope_metrics
    assert scope.scope.name == "broker-meter"
    by_name = {metric.name: metric for metric in scope.metrics}
    assert by_name["rocketmq_messages_in_total"].sum.data_points[0].as_double == 5.0
    point = by_name["rocketmq_rpc_latency"].histogram.data_points[0]
    assert list(point.bucket_counts) == [1, 0, 2]


async def test_large_exports_are_split(collector: tuple[Collector, str]) -> None:
    service, target = collector
    COUNTS.update({f"T{number}": 1.0 for number in range(3 * PORTION_POINTS)})
    config = MonitorConfig(exporter="OTLP_GRPC", target=target, batch_points_max=2 * PORTION_POINTS)
    large = Metrics([Ready(*families())], common={}, series_max=1000)
    pushing = Pushing(large, config, "s")
    pushing.start()
    await asyncio.sleep(0)
    await pushing.stop()
    assert len(service.requests) >= 2


def test_what_a_collector_rejects_is_an_error(collector: tuple[Collector, str]) -> None:
    service, target = collector
    service.rejected = 3
    sender = OtlpSender(target, {}, 5.0)
    with pytest.raises(NotExported, match="3 series rejected"):
        sender.send(a_round().request(list(a_round().metrics(families(), 9))))
    sender.close()


async def test_nobody_there_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    config = MonitorConfig(
        exporter="OTLP_GRPC", target="http://127.0.0.1:1", interval_ms=100, timeout_ms=200
    )
    pushing = Pushing(metrics(), config, "s")
    pushing.start()
    await eventually(lambda: pushing.failed_count > 1 or None)
    await pushing.stop()
    assert caplog.text.count("metrics not exported reason=UNAVAILABLE") == 1


async def test_they_may_go_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    pushing = Pushing(metrics(), MonitorConfig(exporter="LOG", log_interval_ms=100), "s")
    pushing.start()
    await eventually(
        lambda: [r for r in caplog.records if r.name == "cometmq.metrics"] or None, "a line"
    )
    await pushing.stop()
    line = next(r.getMessage() for r in caplog.records if r.name == "cometmq.metrics")
    [scope] = json.loads(line)["scopeMetrics"]
    assert {one["name"] for one in scope["metrics"]} == {one.name for one in families()}


class TestSettings:
    def test_rocketmqs_numbers_are_taken(self) -> None:
        assert MonitorConfig(exporter="2").exporter == "PROM"

    def test_a_collector_needs_an_address(self) -> None:
        with pytest.raises(ConfigError, match="metricsGrpcExporterTarget"):
            MonitorConfig(exporter="OTLP_GRPC")

    @pytest.mark.parametrize("target", ["nonsense", "http://host", "https://host:port", "http://"])
    def test_an_address_must_be_one(self, target: str) -> None:
        with pytest.raises(ConfigError, match="host:port"):
            OtlpSender(target, {}, 1.0)

    @pytest.mark.parametrize(
        "settings", [{"labels": "a"}, {"labels": "1a:b"}, {"headers": "key secret"}]
    )
    def test_pairs_must_be_pairs(self, settings: dict[str, Any]) -> None:
        with pytest.raises(ConfigError, match="name:value") as caught:
            MonitorConfig(**settings)
        assert "secret" not in str(caught.value)

    def test_pairs_are_read(self) -> None:
        config = MonitorConfig(labels="a:b, c:d:e,", headers="Authorization:Bearer x")
        assert config.common_labels == {"a": "b", "c": "d:e"}
        assert config.header_pairs == {"authorization": "Bearer x"}
