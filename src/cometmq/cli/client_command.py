"""Common parts of the shell commands that are clients: options, exit codes, progress."""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from cometmq.base.errors import CometError, UsageError

FAILED: Final = 1
MISTAKE: Final = 2
INTERRUPTED: Final = 130

PROGRESS_SECONDS: Final = 5.0

Command = Callable[..., Any]


def name_server_option(command: Command) -> Command:
    return click.option(
        "-n",
        "--name-server",
        "name_servers",
        envvar="NAMESRV_ADDR",
        default="127.0.0.1:9876",
        show_default=True,
        show_envvar=True,
        metavar="HOST:PORT",
        help="Name servers, separated by ';'.",
    )(command)


def topic_option(command: Command) -> Command:
    return click.option("-t", "--topic", required=True, help="The topic.")(command)


@contextmanager
def exit_codes(program: str, *, when_interrupted: int = INTERRUPTED) -> Iterator[None]:
    """Turn errors into one line on standard error and an exit code; SIGTERM ends the work like Ctrl-C."""
    # The library logs lost brokers and retries; here only what ends the command is of interest.
    logger = logging.getLogger("cometmq")
    level_before = logger.level
    logger.setLevel(logging.ERROR)
    handler_before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except UsageError as error:
        _end(program, error, MISTAKE)
    except (CometError, OSError) as error:
        _end(program, error, FAILED)
    except KeyboardInterrupt:
        raise SystemExit(when_interrupted) from None
    finally:
        logger.setLevel(level_before)
        signal.signal(signal.SIGTERM, handler_before)


class Progress:
    """Reports the number of messages on standard error: regularly if it takes long, and at the end."""

    def __init__(self, verb: str, *, is_quiet: bool) -> None:
        self.count = 0
        self._verb = verb
        self._is_quiet = is_quiet
        self._started = self._told = time.monotonic()

    def add(self, count: int) -> None:
        self.count += count
        now = time.monotonic()
        if now - self._told >= PROGRESS_SECONDS and not self._is_quiet:
            self._told = now
            rate = self.count / (now - self._started)
            click.echo(f"{self.count:,} {self._verb}, {rate:,.0f} per second", err=True)

    def end(self) -> None:
        if not self._is_quiet:
            noun = "message" if self.count == 1 else "messages"
            click.echo(f"{self.count:,} {noun} {self._verb}", err=True)


def _end(program: str, error: Exception, code: int) -> None:
    print(f"{program}: {error}", file=sys.stderr)
    raise SystemExit(code) from None
