"""The process that runs filter functions: ``python -m …filters.functions.worker DIRECTORY MEMORY SECONDS``.

A function is ``wants(message)`` in ``DIRECTORY/name.py``; see ``message.Message`` for what it is given. A file is read
again when it has changed. The broker kills a worker that takes too long; a worker whose broker is gone ends by itself,
at the end of its input or, in the middle of a function, by an alarm.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from cometmq.broker.filters.functions.message import Message
from cometmq.broker.filters.functions.protocol import (
    LENGTH_BYTES,
    Answer,
    Batch,
    Fault,
    Loaded,
    Ready,
    Unusable,
    Verdict,
    batch_of,
    error_text,
    frame,
)

NAME: Final = "wants"

Wants = Callable[[Message], object]


class Functions:
    """The functions of a directory, each loaded once for each state of its file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._loaded: dict[str, tuple[tuple[int, int], Wants]] = {}

    def get(self, name: str) -> Wants:
        """Raises whatever keeps the file from being read, compiled or run; TypeError when it holds no function."""
        path = self._directory / f"{name}.py"
        status = path.stat()
        state = (status.st_mtime_ns, status.st_size)
        known = self._loaded.get(name)
        if known is not None and known[0] == state:
            return known[1]
        # The operator's own code, from the operator's own directory; nothing that came over the network.
        names: dict[str, object] = {"__name__": name, "__file__": str(path)}
        exec(compile(path.read_bytes(), str(path), "exec"), names)
        wants = names.get(NAME)
        if not callable(wants):
            raise TypeError(f"expected a function {NAME}(message) in {path.name}, found none")
        self._loaded[name] = state, wants
        return wants


def serve(
    functions: Functions,
    source: BinaryIO,
    answer: Callable[[Answer], None],
    alarm: Callable[[bool], object],
) -> None:
    """Judge batches until the input ends. ``alarm`` is set while there is something to judge."""
    answer(Ready())
    while True:
        length = source.read(LENGTH_BYTES)
        if len(length) < LENGTH_BYTES:
            return
        alarm(True)
        judge(functions, batch_of(source.read(int.from_bytes(length, "big"))), answer)
        alarm(False)


def judge(functions: Functions, batch: Batch, answer: Callable[[Answer], None]) -> None:
    """Answer for one batch. A message that the function fails for is a fault of its own.

    Raises:
        MemoryError: there is none left. What the function holds on to would fail the messages behind this one, too.
    """
    try:
        wants = functions.get(batch.function)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code; what it raised is told
        answer(Unusable(error_text(error)))
        return
    answer(Loaded())
    for message in batch.messages:
        try:
            verdict: Answer = Verdict(bool(wants(Message(message))))
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
            verdict = Fault(error_text(error))
        answer(verdict)


def main(directory: str, memory_bytes: int, seconds: int) -> None:
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What a function prints must not come between the answers, and what it reads must not take from the batches.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    functions = Functions(Path(directory))

    def answer(content: Answer) -> None:
        sink.write(frame(content))
        sink.flush()

    def alarm(is_set: bool) -> None:
        # Nobody catches the signal, so it ends the process. The broker would have killed it long before.
        signal.alarm(seconds if is_set else 0)

    try:
        serve(functions, source, answer, alarm)
    except (BrokenPipeError, MemoryError):
        # The broker is gone, or it will find this process gone and start another.
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
