"""Which event loop servers and blocking clients run on."""

from __future__ import annotations

import asyncio
import logging
import sys

import pytest
import uvloop

from cometmq.monitor import event_loop
from cometmq.remoting.new_loop import new_event_loop


def loop_of_a_server() -> asyncio.AbstractEventLoop:
    found: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        found.append(asyncio.get_running_loop())

    event_loop.run(serve())
    return found[0]


def test_servers_run_on_uvloop_where_it_is_installed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert isinstance(loop_of_a_server(), uvloop.Loop)
    assert caplog.messages == []


def test_without_uvloop_they_run_on_asyncio_and_say_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    caplog.set_level(logging.INFO)
    assert isinstance(loop_of_a_server(), asyncio.SelectorEventLoop)
    [line] = caplog.messages
    assert "uvloop" in line


def test_a_loop_of_its_own_for_blocking_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = new_event_loop()
    assert isinstance(loop, uvloop.Loop)
    loop.close()
    monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = new_event_loop()
    assert isinstance(loop, asyncio.SelectorEventLoop)
    loop.close()
