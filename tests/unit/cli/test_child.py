"""Processes that a command starts: what they are told, and how they end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from cometmq.base.errors import ConfigError
from cometmq.cli.children.child import TOLD_BYTES_MAX, Child

ECHO = """
import json, os, sys
told = json.loads(sys.stdin.readline())
print(json.dumps({"told": told, "systemd": "NOTIFY_SOCKET" in os.environ}), flush=True)
sys.stdin.read()
"""
DEAF = "import time\nprint('{}', flush=True)\ntime.sleep(600)\n"
DEAD = "raise SystemExit(7)\n"


@pytest.fixture(params=["asyncio", "uvloop"])
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        yield runner


@pytest.fixture
def child_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Child]:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name, text in (("echo", ECHO), ("deaf", DEAF), ("dead", DEAD)):
        (tmp_path / f"child_{name}.py").write_text(text)
    return Child


def test_it_is_told_on_standard_input_and_ends_with_that(
    child_of: type[Child], runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere")

    async def main() -> None:
        child = child_of("child_echo", stop_seconds_max=60)
        await child.start({"secret": "x"}, answers=True)
        assert await child.answer() == {"told": {"secret": "x"}, "systemd": False}
        await child.stop()
        assert await child.wait() == 0

    runner.run(main())


def test_what_does_not_end_is_killed(child_of: type[Child], runner: asyncio.Runner) -> None:
    async def main() -> None:
        child = child_of("child_deaf", stop_seconds_max=0.05)
        await child.start({}, answers=True)
        assert await child.answer() == {}
        await child.stop()
        assert await child.wait() == -signal.SIGKILL

    runner.run(main())


def test_what_ends_without_a_word(child_of: type[Child], runner: asyncio.Runner) -> None:
    async def main() -> None:
        child = child_of("child_dead", stop_seconds_max=60)
        await child.start({}, answers=True)
        assert await child.answer() is None
        assert await child.wait() == 7
        await child.stop()
        child.signal(signal.SIGUSR1)

    runner.run(main())


def test_what_is_told_has_a_length_at_most(child_of: type[Child], runner: asyncio.Runner) -> None:
    async def main() -> None:
        child = child_of("child_echo", stop_seconds_max=60)
        longest = {"long": "x" * (TOLD_BYTES_MAX - len('{"long": ""}\n'))}
        await child.start(longest)
        await child.stop()
        assert await child.wait() == 0
        child = child_of("child_echo", stop_seconds_max=60)
        with pytest.raises(ConfigError, match="cannot be told 65537 bytes of settings, 65536 at "):
            await child.start({"long": longest["long"] + "x"})
        await child.stop()

    runner.run(main())


def test_what_was_not_started_need_not_be_stopped(
    child_of: type[Child], runner: asyncio.Runner
) -> None:
    runner.run(child_of("child_echo", stop_seconds_max=60).stop())
