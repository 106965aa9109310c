"""Ctrl-C and SIGTERM while Spark runs: a wish that is granted at the next good moment, or at once.

PySpark's own handler calls Spark from wherever the main thread is, also from within another call, which ends in errors
of the connection between the two. Here the signal only leaves a note, except where there is nothing that could read it.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Stop:
    def __init__(self) -> None:
        self._wanted = threading.Event()
        self._is_at_once = False

    def wait(self, seconds: float) -> bool:
        """Whether a stop is wanted; waits for so long if not."""
        return self._wanted.wait(seconds)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """For work that asks nobody: a signal interrupts it, also one that came before."""
        self._is_at_once = True
        if self._wanted.is_set():
            self._interrupt()
        try:
            yield
        finally:
            self._is_at_once = False

    def ask(self) -> None:
        """A signal came. The second one is not to be put off."""
        if self._is_at_once or self._wanted.is_set():
            self._interrupt()
        self._wanted.set()

    def _interrupt(self) -> None:
        # What is interrupted is most likely a call of Spark, whose client would log the interrupt with a trace.
        logging.getLogger().setLevel(logging.CRITICAL)
        raise KeyboardInterrupt


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Handlers for the main thread while the block runs; elsewhere signals do not arrive, and nothing is changed."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.signal(each, lambda number, frame: stop.ask()) for each in signals}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
