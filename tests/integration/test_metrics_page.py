"""The metrics page of a busy broker beside RocketMQ's: name by name, label by label."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.busy_broker import BusyBroker
from tests.eventually import eventually
from tools.metrics_page import DIFFERENCES

from cometmq.testing.cluster import Cluster, cluster

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics" / "names-and-labels-5.5.0.json"
SETTINGS = {"metricsExporterType": "PROM", "metricsPromExporterPort": "0"}
COMMON = {"cluster", "node_id", "node_type", "otel_scope_name"}

Page = dict[str, dict[str, Any]]


@asynccontextmanager
async def busy(**settings: str) -> AsyncIterator[Cluster]:
    async with cluster(settings={**SETTINGS, **settings}) as servers:
        broker = BusyBroker(servers)
        try:
            await broker.start()
            yield servers
        finally:
            await broker.stop()


async def get(servers: Cluster, path: str, *headers: str) -> tuple[int, str, str]:
    """Status, content type and body."""
    address = servers.brokers[0].metrics_address
    assert address is not None
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"GET {path} HTTP/1.1", f"Host: {address}", *headers, "", ""]
    writer.write("\r\n".join(lines).encode())
    answer = (await asyncio.wait_for(reader.read(), 30)).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    [kind] = re.findall(r"Content-Type: (.*)", head)
    return int(head.split(" ")[1]), kind.strip(), body


def parse(page: str) -> Page:
    """Each name with its type, and per label the values seen."""
    found: Page = {}
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            found[name] = {"type": kind, "labels": {}, "series": 0}
        elif not line.startswith("#"):
            assert re.fullmatch(
                r'[a-z0-9_]+(\{([a-z_]+="([^"\\]|\\.)*",?)*\})? [-+.0-9eInf]+', line
            )
            name = line.split("{")[0].split(" ")[0]
            name = name if name in found else re.sub(r"_(bucket|count|sum)$", "", name)
            found[name]["series"] += 1
            for label, value in re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', line):
                found[name]["labels"].setdefault(label, set()).add(value)
    return found


@pytest.fixture(scope="module")
def golden() -> list[dict[str, Any]]:
    return json.loads(GOLDEN.read_text())  # type: ignore[no-any-return]


async def page_of(servers: Cluster) -> Page:
    status, kind, body = await get(servers, "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    return parse(body)


# Labels of which each value has a meaning, the same in both.
FIXED = {
    "message_type",
    "is_retry",
    "is_system",
    "protocol_type",
    "result",
    "invocation_status",
    "put_status",
    "processor",
    "storage_medium",
    "storage_type",
    "timer_bound_s",
    "node_type",
    "le",
    "consume_mode",
}


async def test_names_types_and_labels_are_those_of_rocketmq(golden: list[dict[str, Any]]) -> None:
    async with busy() as servers:
        ours: Page = {}

        async def all_there() -> bool | None:
            # Timed and delayed messages, and what a pop gave out, take their time.
            ours.update(await page_of(servers))
            names = {one["name"] for one in golden} - DIFFERENCES.keys()
            return names <= ours.keys() or None

        missing = [one["name"] for one in golden if one["name"] not in DIFFERENCES]
        await eventually(all_there, lambda: f"missing: {sorted(set(missing) - ours.keys())}")
    faults = []
    for one in golden:
        name = one["name"]
        if name in DIFFERENCES and name not in ours:
            continue
        found = ours[name]
        if found["type"] != one["type"]:
            faults.append(f"{name}: {found['type']} instead of {one['type']}")
        wanted = set(one["labels"]) | (COMMON if name != "target_info" else set())
        if found["labels"].keys() != wanted:
            faults.append(f"{name}: {sorted(found['labels'])} instead of {sorted(wanted)}")
        for label in FIXED & found["labels"].keys():
            allowed = set(one["labels"][label]) | _also_in_rocketmq(label)
            if more := found["labels"][label] - allowed:
                faults.append(f"{name}: {label} is {more}, in RocketMQ one of {allowed}")
    assert faults == []


def _also_in_rocketmq(label: str) -> set[str]:
    """Values that the capture happens not to have."""
    if label in ("is_retry", "is_system"):
        return {"true", "false"}
    return {"invocation_status": {"success", "failure"}}.get(label, set())


async def test_differences_are_real(golden: list[dict[str, Any]]) -> None:
    """What is listed as missing here is missing, and all else that is listed is on RocketMQ's page."""
    names = {one["name"] for one in golden}
    assert DIFFERENCES.keys() <= names
    async with cluster(settings=SETTINGS) as servers:
        page = await page_of(servers)
    assert [
        name for name, (is_missing, _) in DIFFERENCES.items() if is_missing and name in page
    ] == []
    ours = {name for name in page if name.startswith("rocketmq_")}
    assert ours <= names


async def test_values_add_up() -> None:
    async with busy(metricsLabel="site:here,rack:7") as servers:

        def value(body: str, name: str, **labels: str) -> float:
            found = [
                float(line.rsplit(" ", 1)[1])
                for line in body.splitlines()
                if line.startswith(name + "{")
                and all(f'{label}="{text}"' in line for label, text in labels.items())
            ]
            return sum(found)

        async def all_taken() -> str | None:
            _, _, body = await get(servers, "/metrics")
            out = value(body, "rocketmq_messages_out_total", topic="GN", consumer_group="grp_n")
            return body if out == 5 else None

        body = await eventually(all_taken, "five messages out")
        assert value(body, "rocketmq_messages_in_total", topic="GN", message_type="normal") == 5
        assert value(body, "rocketmq_messages_in_total", topic="GF", message_type="fifo") == 1
        assert value(body, "rocketmq_message_size_count", topic="GN") == 5
        assert value(body, "rocketmq_message_size_bucket", topic="GN", le="1024.0") == 1
        assert value(body, "rocketmq_commit_messages_total", topic="GT") == 1
        assert value(body, "rocketmq_rollback_messages_total", topic="GT") == 1
        assert value(body, "rocketmq_half_messages", topic="GT") == 1
        assert value(body, "rocketmq_send_to_dlq_messages_total", consumer_group="grp_u") == 1
        assert value(body, "rocketmq_consumer_inflight_messages", consumer_group="grp_zz") >= 1
        assert value(body, "rocketmq_topic_create_execution_time_milliseconds_count") == 2
        assert (
            value(body, "cometmq_requests_refused_total", request_code="update_and_create_topic")
            == 1
        )
        sends = value(
            body,
            "rocketmq_rpc_latency_milliseconds_count",
            request_code="send_message_v2",
            response_code="success",
        )
        assert sends >= 13
        series = [
            line for line in body.splitlines() if line.startswith("rocketmq_broker_permission")
        ]
        assert 'site="here"' in series[0]
        assert 'rack="7"' in series[0]


async def test_health_and_other_paths() -> None:
    async with cluster(settings=SETTINGS) as servers:
        status, kind, body = await get(servers, "/healthz")
        assert (status, kind) == (200, "application/json")
        assert json.loads(body) == {"status": "ok", "checks": {"loop": "ok", "log": "ok"}}
        status, _, body = await get(servers, "/readyz")
        assert (status, json.loads(body)["status"]) == (200, "ok")
        status, kind, body = await get(servers, "/metrics", "Accept: application/openmetrics-text")
        assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        assert body.endswith("# EOF\n")
        status, _, body = await get(servers, "/metrics?name[]=rocketmq_topic_number")
        assert len(body.splitlines()) == 5
        assert (await get(servers, "/metrics?" + "&".join(["a=1"] * 200)))[0] == 400
        assert (await get(servers, "/"))[0] == 404


async def test_a_full_disk_is_not_ready_and_a_broken_log_is_not_alive() -> None:
    async with cluster(settings={"healthPort": "0", **SETTINGS}) as servers:
        broker = servers.brokers[0]
        store = broker.core.store
        store._housekeeping._retention.is_disk_full = True
        status, _, body = await get(servers, "/readyz")
        assert status == 503
        assert "diskSpaceWarningLevelRatio" in json.loads(body)["checks"]["disk"]
        assert (await get(servers, "/healthz"))[0] == 200
        store._on_flush_failure("the log could not be written to disk: gone")
        status, _, body = await get(servers, "/healthz")
        assert status == 503
        assert json.loads(body)["checks"]["log"].endswith("gone")
        assert not broker.is_alive()


async def test_families_are_switched_off_by_rocketmqs_keys() -> None:
    off = {
        "enableRemotingMetrics": "rpc_latency",
        "enableMessageStoreMetrics": "storage_size",
        "enablePopMetrics": "pop_revive",
        "enableStatsMetrics": "topic_number",
    }
    async with cluster(settings={**SETTINGS, **dict.fromkeys(off, "false")}) as servers:
        _, _, body = await get(servers, "/metrics")
        assert [name for name in off.values() if name in body] == []
        assert "cometmq_uptime" in body
