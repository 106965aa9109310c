"""What the commands of all servers have in common: flags, the configuration file, and how they begin and fail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from cometmq import __version__
from cometmq.base import logs
from cometmq.base.errors import CometError, ConfigError, one_line
from cometmq.base.log_rates import LogLimits
from cometmq.base.properties_file import decode_file, parse_properties
from cometmq.native import choice

ROCKETMQ_LOGS: Final = "~/logs/rocketmqlogs"
VERSION: Final = f"{__version__} ({choice.NAME})"
"""With the implementation that runs: whoever tells how fast or how broken it is, is asked for both."""

Command = TypeVar("Command", bound=Callable[..., Any])


def version_option(program: str) -> Callable[[Command], Command]:
    """``--version``."""
    return click.version_option(VERSION, prog_name=program)


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
    """``--log-level``, ``--log-file`` and ``--rocketmq-logs``, as arguments of these names."""
    file = click.option(
        "--log-file",
        metavar="FILE",
        envvar="COMETMQ_LOG_FILE",
        show_envvar=True,
        help=f"Log to a file ({logs.FILE_COUNT} x {logs.FILE_BYTES_MAX >> 20} MiB) instead of standard error.",
    )
    rocketmq = click.option(
        "--rocketmq-logs",
        is_flag=True,
        envvar="COMETMQ_ROCKETMQ_LOGS",
        show_envvar=True,
        help=f"Log to RocketMQ's file in {ROCKETMQ_LOGS}, for tools that look there.",
    )
    return log_level_option(file(rocketmq(command)))


def log_level_option(command: Command) -> Command:
    """``--log-level``, as argument ``log_level``."""
    return click.option(
        "--log-level",
        default="INFO",
        show_default=True,
        envvar="COMETMQ_LOG_LEVEL",
        show_envvar=True,
        metavar="LEVEL",
        type=click.Choice(logs.LEVELS, case_sensitive=False),
        help=f"What to log: {', '.join(logs.LEVELS[:-1])} or {logs.LEVELS[-1]}.",
    )(command)


def log_file_of(server: str, log_file: str | None, rocketmq_logs: bool) -> str | None:
    """Where a server logs to, by its options; None for standard error.

    Raises:
        ConfigError: the options name two places, or RocketMQ's directory cannot be made.
    """
    if not rocketmq_logs:
        return log_file
    if log_file is not None:
        raise ConfigError("--log-file and --rocketmq-logs name two places: give one of them")
    directory = Path(ROCKETMQ_LOGS).expanduser()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{directory} cannot be made for logs: {error.strerror}") from None
    return str(directory / f"{server}.log")


@contextmanager
def failing_in_one_line() -> Iterator[None]:
    """What an operator can mend ends the command with a line, not with a traceback."""
    try:
        yield
    except (CometError, OSError) as error:
        raise click.ClickException(one_line(error)) from None


def read_config_file(path: str | None) -> dict[str, str]:
    """Raises ConfigError when it cannot be read. Without a path there are no settings."""
    if path is None:
        return {}
    try:
        return parse_properties(decode_file(Path(path).read_bytes()))
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {one_line(error)}") from None


def config_values(path: str | None) -> dict[str, str]:
    """As ``read_config_file``, and where changes are written: into the file that was read, as in RocketMQ."""
    return {
        **read_config_file(path),
        "configStorePath": str(Path(path).absolute()) if path else "",
    }


def begin(
    logger: str,
    *,
    log_level: str,
    log_file: str | None,
    limits: LogLimits,
    without_effect: Sequence[str],
) -> None:
    """Start logging, and log which keys of the configuration do nothing here. Raises ConfigError."""
    if not __debug__:
        raise ConfigError("this server relies on its assertions: run it without python -O")
    logs.configure(level=log_level, file=log_file, limits=limits)
    if without_effect:
        logging.getLogger(logger).warning(
            "settings without effect here keys=%s", ",".join(without_effect)
        )
