"""Settings as rows: loading, bounds, helpful refusals."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from cometmq.base.errors import ConfigError
from cometmq.base.settings import (
    load,
    parse,
    render,
    rows,
    setting,
    unknown_key,
    value_of,
)


@dataclass(frozen=True)
class Flush:
    interval_ms: int = setting(
        "flushInterval", "Pause.", default=500, low=1, high=10_000, live=True
    )
    ratio: float = setting("diskRatio", "Used part.", default=0.75)
    mode: str = setting("flushDiskType", "How.", default="ASYNC", choices=("ASYNC", "SYNC"))


@dataclass(frozen=True)
class Config:
    name: str = setting("brokerName", "Name.", default="broker")
    enabled: bool = setting("enabled", "Switch.", default=True)
    flush: Flush = field(default_factory=Flush)


ROWS = {row.key: row for row in rows(Config)}


def test_rows_come_in_order_with_their_path_and_kind() -> None:
    assert list(ROWS) == ["brokerName", "enabled", "flushInterval", "diskRatio", "flushDiskType"]
    assert ROWS["flushInterval"].path == ("flush", "interval_ms")
    assert [row.kind for row in ROWS.values()] == [str, bool, int, float, str]
    assert ROWS["flushInterval"].default == 500
    assert ROWS["flushInterval"].live
    assert not ROWS["brokerName"].live


def test_loading_changes_what_is_named_and_nothing_else() -> None:
    config = load(Config, {"flushInterval": " 7 ", "enabled": "FALSE"})
    assert config == Config(enabled=False, flush=Flush(interval_ms=7))
    assert load(Config, {}) == Config()
    again = load(Config, {"brokerName": "b"}, base=config)
    assert again == Config(name="b", enabled=False, flush=Flush(interval_ms=7))
    assert value_of(again, ROWS["flushInterval"]) == 7


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("enabled", "yes", "enabled must be true or false, not 'yes'"),
        ("flushInterval", "fast", "flushInterval must be a whole number, not 'fast'"),
        ("flushInterval", "0", "flushInterval must be at least 1, not 0"),
        ("flushInterval", "10001", "flushInterval must be at most 10000, not 10001"),
        ("diskRatio", "much", "diskRatio must be a number, not 'much'"),
        ("diskRatio", "nan", "diskRatio must be a number, not 'nan'"),
        ("flushInterval", "1_0", "flushInterval must be a whole number, not '1_0'"),
        ("flushInterval", "٧", "flushInterval must be a whole number, not '٧'"),
        ("flushDiskType", "LAZY", "flushDiskType must be one of ASYNC, SYNC, not 'LAZY'"),
        ("brokerNam", "x", "unknown setting 'brokerNam'; did you mean 'brokerName'?"),
        ("zzz", "x", "unknown setting 'zzz'"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(key: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(Config, {key: text})
    assert str(caught.value) == message


def test_the_nearest_key_is_suggested_only_when_near() -> None:
    assert unknown_key("flushIntervall", ROWS).endswith("did you mean 'flushInterval'?")
    assert "mean" not in unknown_key("q", ROWS)


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (None, ""), (5, "5"), ("x", "x")])
def test_values_are_rendered_as_java_does(value: object, text: str) -> None:
    assert render(value) == text


def test_rendered_values_parse_back() -> None:
    config = Config()
    for row in ROWS.values():
        assert parse(row, render(value_of(config, row))) == value_of(config, row)


def test_a_long_text_is_shown_in_part() -> None:
    message = unknown_key("k" * 60_000, ROWS)
    assert message == f"unknown setting '{'k' * 100}' and 59900 characters more"
    with pytest.raises(ConfigError, match="and 900 characters more"):
        load(Config, {"enabled": "x" * 1000})
