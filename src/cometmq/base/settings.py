"""Settings as rows: Python name, RocketMQ's key, help, bounds, and how it may change over the network.

A frozen dataclass per subject declares its rows with ``setting``; a config class composes such slices.
The same rows load ``broker.conf``, answer ``getBrokerConfig``, apply ``updateBrokerConfig`` and print ``--help``.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from cometmq.base.errors import ConfigError

T = TypeVar("T")

_SHOWN_CHARS = 100

# Python's own int() and float() accept more: digits of other scripts, underscores, nan, thousands of digits.
_DIGITS = r"[+-]?[0-9]{1,19}"
_NUMBERS = {
    int: ("a whole number", re.compile(_DIGITS)),
    float: ("a number", re.compile(rf"{_DIGITS}(\.[0-9]{{0,19}})?([eE][+-]?[0-9]{{1,2}})?")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One setting. ``path`` leads from the config object to the field.

    Over the network, a ``live`` row changes at once and a ``next_start`` row only in the file. All other rows cannot
    be changed: the server's identity, where it listens, where its files are, what protects it.
    """

    key: str
    help: str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    live: bool = False
    next_start: bool = False
    is_secret: bool = False
    kind: type = str
    default: Any = None
    path: tuple[str, ...] = ()


def setting(
    key: str,
    help: str,
    *,
    default: Any,
    low: int | None = None,
    high: int | None = None,
    choices: tuple[str, ...] = (),
    live: bool = False,
    next_start: bool = False,
    is_secret: bool = False,
) -> Any:
    """A dataclass field that is a setting: ``file_bytes: int = setting("mappedFileSizeCommitLog", ...)``.

    A secret is neither in the repr of a config nor in what a server tells of its settings.
    """
    row = Row(
        key=key,
        help=help,
        low=low,
        high=high,
        choices=choices,
        live=live,
        next_start=next_start,
        is_secret=is_secret,
    )
    return dataclasses.field(default=default, metadata={"setting": row}, repr=not is_secret)


def rows(config_class: type) -> tuple[Row, ...]:
    """All rows of a config class, including its slices, in order of declaration."""
    return _rows(config_class)


@functools.cache
def _rows(config_class: type) -> tuple[Row, ...]:
    found: list[Row] = []
    hints = get_type_hints(config_class)
    for field in dataclasses.fields(config_class):
        kind = hints[field.name]
        row = field.metadata.get("setting")
        if row is not None:
            found.append(
                dataclasses.replace(
                    row, kind=_plain_kind(kind), default=field.default, path=(field.name,)
                )
            )
        elif dataclasses.is_dataclass(kind):
            found += (
                dataclasses.replace(inner, path=(field.name, *inner.path))
                for inner in rows(kind)  # type: ignore[arg-type]
            )
    return tuple(found)


def load(config_class: type[T], values: Mapping[str, str], *, base: T | None = None) -> T:
    """A config object from strings by RocketMQ key; keys without a row must have been removed before.

    Args:
        base: start from this object instead of the defaults.

    Raises:
        ConfigError: a value that does not fit its row.
    """
    known = {row.key: row for row in rows(config_class)}
    config: Any = base if base is not None else config_class()
    changes: dict[tuple[str, ...], Any] = {}
    for key, text in values.items():
        if key not in known:
            raise ConfigError(unknown_key(key, known))
        changes[known[key].path] = parse(known[key], text)
    return _replace(config, changes)  # type: ignore[no-any-return]


def value_of(config: object, row: Row) -> Any:
    """The value a config object holds for a row."""
    for name in row.path:
        config = getattr(config, name)
    return config


def parse(row: Row, text: str) -> Any:
    """The typed value of a string. Raises ConfigError with what was expected."""
    text = text.strip()
    if row.kind is bool:
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{row.key} must be true or false, not {shown(text)}")
        return text.lower() == "true"
    if row.kind is int or row.kind is float:
        noun, pattern = _NUMBERS[row.kind]
        if pattern.fullmatch(text) is None:
            raise ConfigError(f"{row.key} must be {noun}, not {shown(text)}")
        number = row.kind(text)
        if row.low is not None and number < row.low:
            raise ConfigError(f"{row.key} must be at least {row.low}, not {text}")
        if row.high is not None and number > row.high:
            raise ConfigError(f"{row.key} must be at most {row.high}, not {text}")
        return number
    if row.choices and text not in row.choices:
        raise ConfigError(f"{row.key} must be one of {', '.join(row.choices)}, not {shown(text)}")
    return text


def render(value: object) -> str:
    """A value as RocketMQ writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def unknown_key(key: str, known: Mapping[str, object]) -> str:
    """The message for an unknown key, with the closest known one."""
    if len(key) > _SHOWN_CHARS:  # nothing is close, and the search is slow for long strings
        return f"unknown setting {shown(key)}"
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown setting {key!r}{hint}"


def shown(text: str) -> str:
    """Untrusted text for use in a message: quoted, escaped, of bounded length."""
    cut = len(text) - _SHOWN_CHARS
    return repr(text) if cut <= 0 else f"{text[:_SHOWN_CHARS]!r} and {cut} characters more"


def _plain_kind(kind: Any) -> type:
    return {bool: bool, int: int, float: float}.get(kind, str)


def _replace(config: Any, changes: Mapping[tuple[str, ...], Any]) -> Any:
    direct = {path[0]: value for path, value in changes.items() if len(path) == 1}
    nested: dict[str, dict[tuple[str, ...], Any]] = {}
    for path, value in changes.items():
        if len(path) > 1:
            nested.setdefault(path[0], {})[path[1:]] = value
    for name, inner in nested.items():
        direct[name] = _replace(getattr(config, name), inner)
    return dataclasses.replace(config, **direct) if direct else config
