"""What systemd is told, over a socket of our own."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.eventually import eventually

from cometmq.monitor.service_manager import ServiceManager


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.setblocking(False)
        yield sock


def said(manager: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            found.append(manager.recv(100).decode())
        except BlockingIOError:
            return found


async def test_it_says_when_it_is_up_and_when_it_stops(manager: socket.socket) -> None:
    told = ServiceManager({"NOTIFY_SOCKET": manager.getsockname()})
    told.ready(lambda: True)
    told.stopping()
    assert said(manager) == ["READY=1", "STOPPING=1"]


async def test_the_watchdog_is_fed_while_the_server_is_well(
    manager: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    environment = {
        "NOTIFY_SOCKET": manager.getsockname(),
        "WATCHDOG_USEC": "2000",
        "WATCHDOG_PID": str(os.getpid()),
    }
    told = ServiceManager(environment)
    is_well = True
    told.ready(lambda: is_well)
    fed: list[str] = []

    def is_fed() -> bool | None:
        fed.extend(said(manager))
        return fed.count("WATCHDOG=1") > 3 or None

    await eventually(is_fed)
    is_well = False
    await eventually(lambda: "watchdog not fed" in caplog.text)
    said(manager)
    await asyncio.sleep(0.02)
    assert said(manager) == []
    assert caplog.text.count("watchdog not fed") == 1
    is_well = True
    await eventually(lambda: "WATCHDOG=1" in said(manager))
    told.stopping()


@pytest.mark.parametrize(
    "environment", [{"WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "0"}]
)
async def test_a_watchdog_of_somebody_else_is_not_fed(
    manager: socket.socket, environment: dict[str, str]
) -> None:
    told = ServiceManager(
        {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "1000", **environment}
    )
    told.ready(lambda: True)
    told.stopping()
    assert said(manager) == ["READY=1", "STOPPING=1"]


async def test_nobody_to_tell_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    ServiceManager({}).ready(lambda: True)
    assert caplog.messages == []
    ServiceManager({"NOTIFY_SOCKET": "/nowhere/at/all"}).ready(lambda: True)
    assert "service manager not told state=READY=1" in caplog.text
