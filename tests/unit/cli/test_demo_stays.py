"""Ctrl-C at the moment in which the demo says that it waits for it."""

from __future__ import annotations

import asyncio
import signal

import pytest

from cometmq.cli.demo.demo_dashboard import stay


def test_it_ends_however_early_it_is_told() -> None:
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        signal.raise_signal(signal.SIGINT)

    try:
        asyncio.run(stay(say))
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C came before anybody listened")
    assert said == ["servers and dashboard stay until Ctrl-C"]
