"""Our own mqadmin in the place of ``SingleJava("AdminCommands")``: the same scripts run with either."""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.eventually import wait_until

from cometmq.cli.mqadmin.main import run
from cometmq.cli.mqadmin.registry import find

from .java import RunningProgram
from .mqadmin_script import COMMAND_LIST, START_CLIENTS
from .single_java import SingleJava

CLIENTS_SECONDS_MAX = 90.0


class OwnTool:
    """``start`` is Java's program: the clients that are looked at are the same ones as in its own runs."""

    def __init__(self, start: SingleJava) -> None:
        self._start = start

    def run(
        self,
        home: Path,
        arguments: Iterable[str],
        *,
        text: str = "",
        seconds_max: float,
    ) -> str:
        """What the commands print, in the form in which ``AdminCommands`` hands it back.

        ``seconds_max`` is not looked at: each request has its own.
        """
        clients: list[RunningProgram] = []
        words = [*arguments]
        parts = []
        with contextlib.chdir(home), _environment(ROCKETMQ_HOME=str(home)):
            try:
                for line in text.splitlines():
                    started = time.monotonic()
                    if line == START_CLIENTS:
                        clients.append(self._clients(home / "clients", words))
                        said = ""
                    else:
                        said = _said([] if line == COMMAND_LIST else line.split("\t"))
                    spent = int((time.monotonic() - started) * 1000)
                    parts.append(f">>> {spent}\n{said}\n<<<\n")
            finally:
                for program in clients:
                    program.no_more_input()
                    program.wait(CLIENTS_SECONDS_MAX)
        return "".join(parts)

    def _clients(self, home: Path, arguments: list[str]) -> RunningProgram:
        home.mkdir()
        program = self._start.start(home, arguments)
        assert program.process.stdin is not None
        program.process.stdin.write(f"{START_CLIENTS}\n".encode())
        wait_until(lambda: "<<<" in program.lines(), program.errors, CLIENTS_SECONDS_MAX)
        return program


def _said(words: list[str]) -> str:
    command = find(words[0]) if words else None
    if command is not None and command.confirm is not None:
        words = [*words, "--yes"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        run(words)
    return said.getvalue()


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.pop("NAMESRV_ADDR", None)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
