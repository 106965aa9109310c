"""Settings as rows: Python name, RocketMQ's key, help, bounds, and whether it may change while running.

A frozen dataclass per subject declares its rows with ``setting``; a config class composes such slices.
The same rows load ``broker.conf``, answer ``getBrokerConfig``, apply ``updateBrokerConfig`` and print ``--help``.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from cometmq.base.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known about one setting. ``path`` leads from the config object to the field."""

    key: str
    help: str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    live: bool = False
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
) -> Any:
    """A dataclass field that is a setting: ``file_bytes: int = setting("mappedFileSizeCommitLog", ...)``."""
    row = Row(key=key, help=help, low=low, high=high, choices=choices, live=live)
    return dataclasses.field(default=default, metadata={"setting": row})


def rows(config_class: type) -> Iterator[Row]:
    """All rows of a config class, slices included, in order of declaration."""
    hints = get_type_hints(config_class)
    for field in dataclasses.fields(config_class):
        kind = hints[field.name]
        row = field.metadata.get("setting")
        if row is not None:
            yield dataclasses.replace(
                row, kind=_plain_kind(kind), default=field.default, path=(field.name,)
            )
        elif dataclasses.is_dataclass(kind):
            for inner in rows(kind):  # type: ignore[arg-type]
                yield dataclasses.replace(inner, path=(field.name, *inner.path))


def load(config_class: type[T], values: Mapping[str, str], *, base: T | None = None) -> T:
    """A config object from texts by RocketMQ key; keys that are no rows must have been taken out before.

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
    """The typed value of a text. Raises ConfigError with what was expected."""
    text = text.strip()
    if row.kind is bool:
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{row.key} must be true or false, not {text!r}")
        return text.lower() == "true"
    if row.kind is int or row.kind is float:
        try:
            number = row.kind(text)
        except ValueError:
            noun = "a whole number" if row.kind is int else "a number"
            raise ConfigError(f"{row.key} must be {noun}, not {text!r}") from None
        if row.low is not None and number < row.low:
            raise ConfigError(f"{row.key} must be at least {row.low}, not {text}")
        if row.high is not None and number > row.high:
            raise ConfigError(f"{row.key} must be at most {row.high}, not {text}")
        return number
    if row.choices and text not in row.choices:
        raise ConfigError(f"{row.key} must be one of {', '.join(row.choices)}, not {text!r}")
    return text


def render(value: object) -> str:
    """The text of a value as RocketMQ writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def unknown_key(key: str, known: Mapping[str, object]) -> str:
    """The message for a key nobody knows, with the nearest known one."""
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown setting {key!r}{hint}"


def parse_properties(text: str) -> dict[str, str]:
    """Java's properties format: ``key=value`` or ``key:value`` lines, ``#`` and ``!`` comments, ``\\`` continuation."""
    values: dict[str, str] = {}
    for line in _logical_lines(text):
        key_end, value_start = _split_at(line)
        values[_unescape(line[:key_end])] = _unescape(line[value_start:])
    return values


def render_properties(values: Mapping[str, str]) -> str:
    """``key=value`` lines, as the servers answer config queries."""
    return "".join(f"{key}={value}\n" for key, value in values.items())


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


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for raw in text.splitlines():
        line = raw.lstrip()
        if not pending and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2 == 1:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _split_at(line: str) -> tuple[int, int]:
    """Where the key ends and the value starts: the first unescaped ``=``, ``:`` or blank."""
    position = 0
    while position < len(line) and line[position] not in "=: \t":
        position += 2 if line[position] == "\\" else 1
    key_end = min(position, len(line))
    value_start = key_end
    while value_start < len(line) and line[value_start] in " \t":
        value_start += 1
    if value_start < len(line) and line[value_start] in "=:":
        value_start += 1
    while value_start < len(line) and line[value_start] in " \t":
        value_start += 1
    return key_end, value_start


_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        letter = text[position]
        position += 1
        if letter != "\\" or position == len(text):
            out.append(letter)
            continue
        escaped = text[position]
        position += 1
        if escaped == "u" and len(text) >= position + 4:
            try:
                out.append(chr(int(text[position : position + 4], 16)))
            except ValueError:
                raise ConfigError(f"bad \\u escape in {text!r}") from None
            position += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    return "".join(out)
