"""What the options of ``cometmq backup`` mean: which store, and which time."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from cometmq.base.errors import UsageError

if TYPE_CHECKING:
    from cometmq.store.store_config import StoreConfig

Command = Callable[..., Any]


def store_options(command: Command) -> Command:
    """``-c`` and ``--store``, as arguments ``config_file`` and ``store`` for ``store_config``."""
    config_file = click.option(
        "-c",
        "--config",
        "config_file",
        metavar="FILE",
        help="The broker.conf of the broker: says where its store is, and the sizes of its files.",
    )
    store = click.option(
        "--store",
        metavar="DIR",
        help="The directory of the store (storePathRootDir), if it is not that of the broker.conf.",
    )
    return config_file(store(command))


def quiet_option(command: Command) -> Command:
    return click.option("-q", "--quiet", "is_quiet", is_flag=True, help="Show no progress.")(
        command
    )


def store_config(config_file: str | None, store: str | None) -> StoreConfig:
    """Raises ConfigError, UsageError."""
    from cometmq.base.server_command import read_config_file
    from cometmq.broker.config.broker_config import load_broker_config

    if config_file is None and store is None:
        raise UsageError("expected -c broker.conf or --store DIR, got neither: which store is it?")
    config, _ = load_broker_config(read_config_file(config_file))
    if store is None:
        return config.store
    return dataclasses.replace(config.store, root=store.rstrip("/") or "/", log_directory="")


def time_ms(text: str) -> int:
    """Milliseconds since 1970 of an ISO time, which is local without a zone, or of a number. Raises UsageError."""
    if text.isascii() and text.isdecimal():
        return int(text)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"expected a time such as 2026-11-18T14:30:00+01:00 or milliseconds since 1970, got {text!r}"
        ) from None
    # Without a zone: as the operator's own clock shows it.
    return int(moment.astimezone(datetime.UTC).timestamp() * 1000)
