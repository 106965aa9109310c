"""When a signal stops a run."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator

import pytest

from cometmq.spark.pipeline.stop import Stop, stop_on_signals


@pytest.fixture(autouse=True)
def _log_level() -> Iterator[None]:
    before = logging.getLogger().level
    yield
    logging.getLogger().setLevel(before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_wish_and_the_second_an_interrupt(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        assert not stop.wait(0)
        signal.raise_signal(number)
        assert stop.wait(0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_work_that_asks_nobody_is_interrupted() -> None:
    stop = Stop()
    with pytest.raises(KeyboardInterrupt), stop.at_once():
        stop.ask()
    stop.ask()
    assert stop.wait(0)
    with pytest.raises(KeyboardInterrupt), stop.at_once():
        raise AssertionError("the wish came before")
