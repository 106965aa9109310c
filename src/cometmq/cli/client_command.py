"""Common parts of the shell commands that are clients: options, exit codes, progress."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from cometmq.base.errors import CometError, UsageError, one_line

if TYPE_CHECKING:
    from cometmq.client import ClientConfig

FAILED: Final = 1
MISTAKE: Final = 2
INTERRUPTED: Final = 130

PROGRESS_SECONDS: Final = 5.0

Command = Callable[..., Any]


DEFAULT_NAME_SERVER: Final = "127.0.0.1:9876"


def connection_options(command: Command) -> Command:
    """``-n`` and ``-c``, as arguments ``name_servers`` and ``config_file`` for ``client_config``."""
    name_servers = click.option(
        "-n",
        "--name-server",
        "name_servers",
        metavar="HOST:PORT",
        help="Name servers, separated by ';'. By default those of COMETMQ_NAMESRV_ADDR, of the file given "
        f"with -c, of NAMESRV_ADDR, else {DEFAULT_NAME_SERVER}.",
    )
    config_file = click.option(
        "-c",
        "--config",
        "config_file",
        envvar="COMETMQ_CLIENT_CONFIG",
        show_envvar=True,
        metavar="FILE",
        help="Settings of the client, such as account and TLS: the client.conf or tools.conf of `cometmq init`. "
        "An environment variable like COMETMQ_ACCESS_KEY overrides the file's accessKey.",
    )
    return name_servers(config_file(command))


def client_config(name_servers: str | None, config_file: str | None) -> ClientConfig:
    """What the options and the environment say. Raises UsageError."""
    from cometmq.client import ClientConfig, load_config

    config = load_config(ClientConfig(), config_file)
    found = config.name_servers or os.environ.get("NAMESRV_ADDR") or DEFAULT_NAME_SERVER
    return config.with_name_servers(name_servers or found)


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
    except BrokenPipeError:
        # Whoever read this, such as `head`, has seen enough. Python would try to write the rest again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(FAILED) from None
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
    print(f"{program}: {one_line(error)}", file=sys.stderr)
    raise SystemExit(code) from None
