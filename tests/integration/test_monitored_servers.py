"""Name server and controller show metrics and health; processes tell systemd, and dump when asked."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.eventually import eventually, wait_until
from tests.interop.servers import free_ports

from cometmq.base.errors import ConfigError, RemotingError
from cometmq.broker.config.broker_config import load_broker_config
from cometmq.broker.server import Broker
from cometmq.controller.controller_config import ControllerConfig
from cometmq.controller.server import Controller
from cometmq.monitor.monitor_config import MonitorConfig
from cometmq.namesrv.namesrv_config import NamesrvConfig
from cometmq.namesrv.server import NameServer
from cometmq.namesrv.with_controller import NameServerWithController
from cometmq.testing.cluster import cluster

MONITOR = MonitorConfig(exporter="PROM", port=0)


async def get(address: str | None, path: str) -> tuple[int, str]:
    assert address is not None
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    head, _, body = (await asyncio.wait_for(reader.read(), 30)).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split(" ")[1]), body


async def test_a_name_server_has_a_page(tmp_path: Path) -> None:
    config = NamesrvConfig(listen_port=0, monitor=MONITOR, kv_path=f"{tmp_path}/kv.json")
    server = NameServer(config)
    await server.start()
    try:
        status, page = await get(server.metrics_address, "/metrics")
        assert status == 200
        assert f'node_id="127.0.0.1:{server.port}",node_type="namesrv"' in page
        assert "cometmq_namesrv_brokers{" in page
        assert (await get(server.metrics_address, "/healthz"))[0] == 200
        assert (await get(server.metrics_address, "/readyz"))[0] == 200
        server.dump()
        text = (tmp_path / "dump.txt").read_text()
        assert "[name server]" in text
        assert "[tasks]" in text
        assert server.is_alive()
    finally:
        await server.stop()


async def test_a_name_server_that_waits_for_brokers_is_not_ready() -> None:
    config = NamesrvConfig(listen_port=0, monitor=MONITOR, need_wait_for_service=True)
    server = NameServer(config)
    await server.start()
    try:
        status, body = await get(server.metrics_address, "/readyz")
        assert status == 503
        assert "waitSecondsForService" in json.loads(body)["checks"]["routes"]
        assert (await get(server.metrics_address, "/healthz"))[0] == 200
    finally:
        await server.stop()


async def test_a_controller_has_a_page_under_rocketmqs_names(tmp_path: Path) -> None:
    config = ControllerConfig(listen_port=0, store_path=str(tmp_path), monitor=MONITOR)
    controller = Controller(config)
    await controller.start()
    try:
        status, page = await get(controller.metrics_address, "/metrics")
        assert status == 200
        [role] = [line for line in page.splitlines() if line.startswith("role{")]
        assert 'otel_scope_name="controller"' in role
        assert role.endswith(" 3.0")
        assert (await get(controller.metrics_address, "/readyz"))[0] == 200
        controller.dump()
        assert "[controller]" in (tmp_path / "dump.txt").read_text()
    finally:
        await controller.stop()


async def test_elections_and_brokers_are_counted(tmp_path: Path) -> None:
    async with cluster(slaves=1, controller=True) as servers:
        controller = servers.servers.controller
        assert controller is not None
        families = {one.page_name: one for one in controller.metrics.source.families}
        assert dict(families["election_total"].read())[("new_master_elected",)] == 1.0

        def both() -> bool | None:
            [(_, alive)] = families["active_broker_num"].read()
            return alive == 2.0 or None

        await eventually(both, "two brokers alive")
        assert dict(families["cometmq_controller_groups_without_master"].read()) == {(): 0.0}


async def test_both_in_one_process_share_a_page(tmp_path: Path) -> None:
    both = NameServerWithController(
        NamesrvConfig(listen_port=0, monitor=MONITOR),
        ControllerConfig(listen_port=0, store_path=str(tmp_path)),
    )
    await both.start()
    try:
        _, page = await get(both.name_server.metrics_address, "/metrics")
        assert "cometmq_namesrv_topics{" in page
        assert "\nrole{" in page
        assert both.is_alive()
    finally:
        await both.stop()


async def test_a_page_port_that_is_taken_leaves_nothing_running(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monitor = MonitorConfig(exporter="PROM", port=taken.getsockname()[1])
        server = NameServer(NamesrvConfig(listen_port=0, monitor=monitor))
        with pytest.raises(RemotingError, match="metricsPromExporterPort"):
            await server.start()
        controller = Controller(
            ControllerConfig(listen_port=0, store_path=str(tmp_path), monitor=monitor)
        )
        with pytest.raises(RemotingError, match="metricsPromExporterPort"):
            await controller.start()


@pytest.mark.parametrize(
    "settings",
    [
        {"metricsExporterType": "PROM", "metricsPromExporterPort": "0"},
        {"healthPort": "5557"},
    ],
)
async def test_beyond_loopback_somebody_must_have_said_so(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    values = {
        "listenPort": "0",
        "storePathRootDir": str(tmp_path),
        "metricsPromExporterHost": "0.0.0.0",
        **settings,
    }
    with pytest.raises(ConfigError, match="metricsAllowAnonymous=true"):
        await Broker(load_broker_config(values)[0]).start()
    monitor = MonitorConfig(exporter="PROM", port=0, host="0.0.0.0")
    with pytest.raises(ConfigError, match="metricsAllowAnonymous=true"):
        await NameServer(NamesrvConfig(listen_port=0, monitor=monitor)).start()
    values |= {"metricsAllowAnonymous": "true", "metricsExporterType": "PROM"}
    values |= {"metricsPromExporterPort": "0", "mappedFileSizeCommitLog": "1048576"}
    broker = Broker(load_broker_config(values)[0])
    await broker.start()
    assert broker.metrics_address is not None
    assert broker.metrics_address.startswith("0.0.0.0:")
    await broker.stop()


@contextmanager
def manager(directory: Path) -> Iterator[tuple[str, list[str]]]:
    """A socket like systemd's, and what came in there."""
    path = str(directory / "notify")
    heard: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(path)

        def listen() -> None:
            while (word := sock.recv(100)) != b"end":
                heard.append(word.decode())

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield path, heard
        finally:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
                last.sendto(b"end", path)
            thread.join()


@pytest.mark.parametrize("server", ["broker", "namesrv", "controller"])
def test_a_process_tells_systemd_and_dumps_when_asked(tmp_path: Path, server: str) -> None:
    port = free_ports(0, -2, +1)[0]
    config = tmp_path / "server.conf"
    config.write_text(
        f"listenPort={port}\nmetricsExporterType=PROM\nmetricsPromExporterPort=0\n"
        f"dumpPath={tmp_path}/dump.txt\n"
        + (
            f"storePathRootDir={tmp_path}/store\nmappedFileSizeCommitLog=1048576\n"
            if server == "broker"
            else f"controllerStorePath={tmp_path}/decisions\n"
        )
    )
    with manager(tmp_path) as (path, heard):
        environment = {**os.environ, "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "100000"}
        environment.pop("WATCHDOG_PID", None)
        with subprocess.Popen(
            [sys.executable, "-m", f"cometmq.{server}", "-c", str(config)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        ) as child:
            try:
                assert child.stdout is not None
                greeting = []
                for line in child.stdout:
                    greeting.append(line)
                    if "to stop it" in line:
                        break
                assert any("/metrics, /healthz, /readyz" in line for line in greeting), greeting
                wait_until(lambda: heard.count("WATCHDOG=1") > 1 or None, "a watchdog fed")
                assert heard[0] == "READY=1"
                dump = tmp_path / "dump.txt"
                child.send_signal(signal.SIGUSR1)
                wait_until(lambda: (dump.exists() and "[tasks]" in dump.read_text()) or None)
                child.send_signal(signal.SIGTERM)
                assert child.wait(30) == 0
            finally:
                child.kill()
        wait_until(lambda: "STOPPING=1" in heard or None, "a word at the stop")
