"""What the options of a table say."""

from __future__ import annotations

from collections.abc import Mapping

from cometmq.base.errors import ConfigError


def needed_option(options: Mapping[str, str], name: str, format_name: str) -> str:
    value = options.get(name)
    if not value:
        raise ConfigError(f"format {format_name} needs the option {name}")
    return value


def number_option(options: Mapping[str, str], name: str) -> int | None:
    value = options.get(name)
    if value is None:
        return None
    if not value.isdecimal():
        raise ConfigError(f"option {name}: expected a number, got {value!r}")
    return int(value)


def options_below(options: Mapping[str, str], prefix: str) -> tuple[tuple[str, str], ...]:
    """The options whose names begin with ``prefix``, sorted and without it."""
    return tuple(
        sorted(
            (name.removeprefix(prefix), value)
            for name, value in options.items()
            if name.startswith(prefix)
        )
    )


def partition_columns(options: Mapping[str, str]) -> tuple[str, ...]:
    """The names in ``partitionBy``, divided by commas."""
    text = options.get("partitionBy") or ""
    return tuple(part.strip() for part in text.split(",") if part.strip())
