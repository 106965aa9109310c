"""Shows how far work that takes minutes or hours has come, on standard error."""

from __future__ import annotations

import sys
import time
from typing import Final

import click

TERMINAL_SECONDS: Final = 0.5
LINE_SECONDS: Final = 10.0


class LongWork:
    """On a terminal one line that changes; elsewhere, as in a log of cron, a line every ten seconds."""

    def __init__(self, *, is_quiet: bool) -> None:
        self._is_quiet = is_quiet
        self._is_terminal = sys.stderr.isatty()
        self._pause = TERMINAL_SECONDS if self._is_terminal else LINE_SECONDS
        self._told = time.monotonic()
        self._is_line_open = False

    def tell(self, what: str, done: int, total: int) -> None:
        """``total`` is 0 for work of unknown length, which is told at once."""
        if self._is_quiet:
            return
        now = time.monotonic()
        if total and now - self._told < self._pause:
            return
        self._told = now
        click.echo(self._open(line(what, done, total)), nl=not self._is_line_open, err=True)

    def end(self) -> None:
        """What is printed next begins a line."""
        if self._is_line_open:
            click.echo(err=True)
            self._is_line_open = False

    def _open(self, text: str) -> str:
        if not self._is_terminal:
            return text
        self._is_line_open = True
        return f"\r{text}\x1b[K"


def line(what: str, done: int, total: int) -> str:
    if not total:
        return what
    return f"{what} {done * 100 // total:3} %  {size_text(done)} of {size_text(total)}"


def size_text(size_bytes: int) -> str:
    """As disks are sold: in powers of a thousand."""
    for unit, width in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size_bytes >= width:
            return f"{size_bytes / width:.1f} {unit}"
    return f"{size_bytes} B"
