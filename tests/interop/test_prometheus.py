"""The metrics page, the alert rules and the Grafana board before Prometheus itself and its promtool."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.busy_broker import BusyBroker
from tests.eventually import eventually

from cometmq.testing.cluster import Cluster, cluster

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(
        not (shutil.which("promtool") and shutil.which("prometheus")),
        reason="no Prometheus: tools/setup_prometheus.sh installs it",
    ),
]

ROOT = Path(__file__).parents[2]
RULES = ROOT / "conf" / "prometheus" / "alerts.yml"
SETTINGS = {"metricsExporterType": "PROM", "metricsPromExporterPort": "0"}
# What promtool says of names that are RocketMQ's.
ROCKETMQS_OWN = re.compile(
    r"^(target_info|rocketmq_\S+) (use base unit \"\w+\" instead of \"\w+\"|"
    r"metric names should not contain abbreviated units|"
    r"non-histogram and non-summary metrics should not have \"_(count|bucket|sum)\" suffix|"
    r"no help text)$"
)


def promtool(*arguments: object, text: str = "") -> str:
    done = subprocess.run(
        ["promtool", *map(str, arguments)], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stdout + done.stderr
    return done.stdout + done.stderr


@asynccontextmanager
async def busy() -> AsyncIterator[tuple[Cluster, BusyBroker]]:
    async with cluster(slaves=1, settings=SETTINGS) as servers:
        broker = BusyBroker(servers)
        try:
            await broker.start()
            yield servers, broker
        finally:
            await broker.stop()


async def get(address: str, path: str) -> str:
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await asyncio.wait_for(reader.read(), 30)).partition(b"\r\n\r\n")
    writer.close()
    if b"transfer-encoding: chunked" in head.lower():
        body = _unchunked(body)
    assert head.split(b" ")[1] == b"200", (path, head, body)
    return body.decode()


def _unchunked(body: bytes) -> bytes:
    parts = []
    while body:
        size, _, body = body.partition(b"\r\n")
        parts.append(body[: int(size, 16)])
        body = body[int(size, 16) + 2 :]
    return b"".join(parts)


async def test_promtool_finds_no_fault_in_the_page() -> None:
    async with busy() as (servers, _):
        for broker in servers.brokers:
            assert broker.metrics_address is not None
            page = await get(broker.metrics_address, "/metrics")
            said = await asyncio.to_thread(promtool, "check", "metrics", text=page)
            assert [line for line in said.splitlines() if not ROCKETMQS_OWN.match(line)] == []


def test_the_alert_rules_are_rules() -> None:
    assert "SUCCESS" in promtool("check", "rules", RULES)
    assert "SUCCESS" in promtool("check", "config", ROOT / "conf" / "prometheus" / "prometheus.yml")


def test_alerts_are_raised_when_they_should(tmp_path: Path) -> None:
    cases = (Path(__file__).parent / "alert_rules_test.yml").read_text()
    file = tmp_path / "cases.yml"
    file.write_text(cases.replace("RULES", str(RULES)))
    assert "SUCCESS" in promtool("test", "rules", file)


@asynccontextmanager
async def prometheus(targets: list[str], directory: Path) -> AsyncIterator[str]:
    """One that scrapes every second; where it listens."""
    config = directory / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: [{RULES}]\n"
        "scrape_configs:\n"
        "  - job_name: cometmq\n"
        f"    static_configs: [{{targets: {json.dumps(targets)}}}]\n"
    )
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{sock.getsockname()[1]}"
    process = await asyncio.create_subprocess_exec(
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={address}",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:

        async def is_ready() -> bool | None:
            try:
                await get(address, "/-/ready")
            except (OSError, AssertionError):
                return None
            return True

        await eventually(is_ready, "Prometheus")
        yield address
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def query(address: str, expression: str) -> list[Any]:
    answer = json.loads(await get(address, "/api/v1/query?query=" + quote(expression)))
    assert answer["status"] == "success", answer
    return answer["data"]["result"]  # type: ignore[no-any-return]


def board_queries() -> dict[str, str]:
    board = json.loads((ROOT / "conf" / "grafana" / "cometmq.json").read_text())
    return {
        panel["title"]: target["expr"].replace("$cluster", ".*").replace("$__rate_interval", "10s")
        for panel in board["panels"]
        for target in panel.get("targets", [])
    }


def rule_metrics() -> set[str]:
    """The names that the rules ask for."""
    expressions = " ".join(re.findall(r"expr:((?:.|\n)*?)\n\s+(?:for|labels):", RULES.read_text()))
    return set(re.findall(r"\b(?:cometmq|rocketmq)_\w+", expressions))


async def test_every_query_of_the_board_gives_data(tmp_path: Path) -> None:
    queries = board_queries()
    assert len(queries) > 30
    async with busy() as (servers, broker):
        targets = [one.metrics_address or "" for one in servers.brokers]
        async with prometheus(targets, tmp_path) as address:
            left = dict(queries)

            async def all_have_data() -> bool | None:
                await broker.send()
                for title, expression in list(left.items()):
                    found = await query(address, expression)
                    if found and all(series["value"][1] != "NaN" for series in found[:1]):
                        del left[title]
                return not left or None

            await eventually(all_have_data, lambda: f"without data: {left}", 90)
            # A rule about a metric that nobody has would never be raised.
            missing = [
                name
                for name in rule_metrics() - {"cometmq_controller_groups_without_master"}
                if not await query(address, name)
            ]
            assert missing == []
            rules = json.loads(await get(address, "/api/v1/rules"))
            faults = [
                (rule["name"], rule["lastError"])
                for group in rules["data"]["groups"]
                for rule in group["rules"]
                if rule.get("lastError")
            ]
            assert faults == []
