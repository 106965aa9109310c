"""What the commands of all servers have in common: flags, the configuration file, and how they begin and fail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from cometmq.base import logs
from cometmq.base.errors import CometError, ConfigError
from cometmq.base.properties_file import decode_file, parse_properties

Command = TypeVar("Command", bound=Callable[..., Any])


def config_options(command: Command) -> Command:
    """``-c`` and ``-p``, as arguments ``config_file`` and ``print_config``."""
    file = click.option(
        "-c",
        "config_file",
        metavar="FILE",
        help="Configuration file: Java properties with RocketMQ's keys. "
        "Changes made over the network are written to it.",
    )
    shown = click.option(
        "-p", "print_config", is_flag=True, help="Print the configuration and exit."
    )
    return file(shown(command))


def log_options(command: Command) -> Command:
    """``--log-level`` and ``--log-file``, as arguments ``log_level`` and ``log_file``."""
    level = click.option(
        "--log-level",
        default="INFO",
        show_default=True,
        envvar="COMETMQ_LOG_LEVEL",
        show_envvar=True,
        type=click.Choice(logs.LEVELS, case_sensitive=False),
    )
    file = click.option(
        "--log-file",
        metavar="FILE",
        envvar="COMETMQ_LOG_FILE",
        show_envvar=True,
        help=f"Log to a file ({logs.FILE_COUNT} x {logs.FILE_BYTES_MAX >> 20} MiB) instead of standard error.",
    )
    return level(file(command))


@contextmanager
def failing_in_one_line() -> Iterator[None]:
    """What an operator can mend ends the command with a line, not with a traceback."""
    try:
        yield
    except (CometError, OSError) as error:
        raise click.ClickException(str(error)) from None


def read_config_file(path: str | None) -> dict[str, str]:
    """Raises ConfigError when it cannot be read. Without a path there are no settings."""
    if path is None:
        return {}
    try:
        return parse_properties(decode_file(Path(path).read_bytes()))
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error}") from None


def config_values(path: str | None) -> dict[str, str]:
    """As ``read_config_file``, and where changes are written: into the file that was read, as in RocketMQ."""
    return {
        **read_config_file(path),
        "configStorePath": str(Path(path).absolute()) if path else "",
    }


def begin(
    logger: str, *, log_level: str, log_file: str | None, without_effect: Sequence[str]
) -> None:
    """Start logging, and log which keys of the configuration do nothing here. Raises ConfigError."""
    if not __debug__:
        raise ConfigError("this server relies on its assertions: run it without python -O")
    logs.configure(level=log_level, file=log_file)
    if without_effect:
        logging.getLogger(logger).warning(
            "settings without effect here keys=%s", ",".join(without_effect)
        )
