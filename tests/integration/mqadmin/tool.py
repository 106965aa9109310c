"""``mqadmin`` in this process: words in, exit code and texts out."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cometmq.cli.mqadmin.main import main


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        """The lines of a table, its head included, as words."""
        return [line.split() for line in self.out.splitlines() if line.strip()]


@dataclass
class Tool:
    """Args: name_servers: of the cluster. ``ran`` are the subcommands that ended well."""

    name_servers: str
    ran: set[str] = field(default_factory=set)

    def __call__(
        self, line: str, *, keyboard: io.StringIO | None = None, screen: io.StringIO | None = None
    ) -> Said:
        out, err = screen or io.StringIO(), io.StringIO()
        words = shlex.split(line)
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            _keyboard(keyboard or io.StringIO()),
        ):
            try:
                main([*words, "-n", self.name_servers])
            except SystemExit as end:
                code = int(end.code or 0)
        if code == 0:
            self.ran.add(words[0])
        return Said(code, out.getvalue(), err.getvalue())

    def ok(self, line: str) -> str:
        """What a command prints that does what it is told."""
        said = self(line)
        assert (said.code, said.err) == (0, ""), said
        return said.out

    def json(self, line: str) -> Any:
        return json.loads(self.ok(f"{line} --json"))

    def bad(self, line: str, code: int) -> str:
        """What a command says on standard error that does not do it."""
        said = self(line)
        assert said.code == code, said
        assert said.err.startswith("mqadmin"), said
        assert "Traceback" not in said.err
        return said.err


class Terminal(io.StringIO):
    """A keyboard or screen with somebody in front of it."""

    def isatty(self) -> bool:
        return True


@contextlib.contextmanager
def _keyboard(keyboard: io.StringIO) -> Iterator[None]:
    before, sys.stdin = sys.stdin, keyboard
    try:
        yield
    finally:
        sys.stdin = before
