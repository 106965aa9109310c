"""The command `cometmq top`."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from cometmq.cli.client_command import client_config, connection_options, exit_codes

if TYPE_CHECKING:
    from cometmq.client import ClientConfig

Show = Callable[[Sequence[str]], None]

UNBOUNDED: Final = 1_000_000
_CLEAR: Final = "\x1b[H\x1b[J"
_OTHER_SCREEN, _FIRST_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


@click.command(short_help="Show brokers and groups with their rates and lag, live.")
@connection_options
@click.option(
    "-i",
    "--interval",
    default=2.0,
    show_default=True,
    type=click.FloatRange(0.2, 3600),
    help="Seconds from one view to the next.",
)
@click.option(
    "--count",
    type=click.IntRange(1),
    help="End after this many views instead of with Ctrl-C.",
)
def top(
    name_servers: str | None, config_file: str | None, interval: float, count: int | None
) -> None:
    """Show the brokers and consumer groups of a cluster, and refresh the view every few seconds.

    IN/s and OUT/s are messages stored and delivered. WAIT ms is how long a send waits until the broker looks at it; for
    our brokers, how late the event loop is. UNFLUSHED is what is not on disk yet. SLAVES are the slaves in sync, of
    all that follow; BEHIND is what the slowest of them lacks. Groups with the largest lag come first; CHANGE/s is how
    fast the lag grows.

    RocketMQ 4 says nothing about its slaves. If the output is not a terminal, the views are written one below the
    other.

    \b
    Exit code: 0 done, or ended by Ctrl-C; 1 the cluster could not be asked; 2 a wrong option.

    \b
    Examples:
      cometmq top
      cometmq top -n 10.0.0.1:9876 --interval 5
    """
    with exit_codes("cometmq top", when_interrupted=0), _screen() as show:
        asyncio.run(_watch(client_config(name_servers, config_file), show, interval, count))


async def _watch(config: ClientConfig, show: Show, interval: float, count: int | None) -> None:
    # Not before they are needed: the command's help needs none of it.
    from cometmq.admin import Admin
    from cometmq.cli.top.frame import frame
    from cometmq.cli.top.gather import snapshot

    async with Admin(config=config) as admin:
        before = None
        for number in itertools.count(1):
            began = time.monotonic()
            now = await snapshot(admin)
            width, height = _size()
            clock = datetime.now().astimezone().strftime("%H:%M:%S")
            title = f"{config.name_servers}   {clock}   every {interval:g} s   Ctrl-C ends"
            show(frame(title, before, now, width=width, height=height))
            before = now
            if number == count:
                return
            await asyncio.sleep(max(interval - (time.monotonic() - began), 0.0))


def _size() -> tuple[int, int]:
    """Of what is shown at once: what fits the terminal; elsewhere everything."""
    if not sys.stdout.isatty():
        return UNBOUNDED, UNBOUNDED
    size = shutil.get_terminal_size()
    return size.columns, size.lines - 1


@contextmanager
def _screen() -> Iterator[Show]:
    """A screen of its own on a terminal, which is as it was afterwards; elsewhere plain lines."""
    if not sys.stdout.isatty():
        yield lambda lines: click.echo("\n".join([*lines, ""]))
        return
    click.echo(_OTHER_SCREEN, nl=False)
    try:
        yield lambda lines: click.echo(_CLEAR + "\n".join(lines), nl=False)
    finally:
        click.echo(_FIRST_SCREEN, nl=False)
