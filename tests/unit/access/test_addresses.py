"""White addresses of RocketMQ 4: the forms, and what they match."""

from __future__ import annotations

import pytest

from cometmq.access.plain.addresses import matcher
from cometmq.base.errors import ConfigError


@pytest.mark.parametrize(
    ("form", "inside", "outside"),
    [
        ("", [], ["10.0.0.1", "::1"]),
        ("  ", [], ["10.0.0.1"]),
        ("*", ["10.0.0.1", "::1"], []),
        ("*.*.*.*", ["10.0.0.1"], []),
        ("*:*:*:*:*:*:*:*", ["::1", "10.0.0.1"], []),
        ("10.1.1.{1,2, 3}", ["10.1.1.1", "10.1.1.3"], ["10.1.1.4", "10.1.2.1"]),
        ("a:b::{1,2}", ["a:b::1", "A:B:0:0:0:0:0:2"], ["a:b::3"]),
        ("10.0.0.1,10.0.0.2", ["10.0.0.1", "10.0.0.2"], ["10.0.0.3"]),
        ("192.168.0.*", ["192.168.0.1", "192.168.0.255"], ["192.168.1.1", "::1"]),
        ("192.168.*.*", ["192.168.7.1"], ["192.169.0.1"]),
        # One range only: what comes after it is ignored, as in RocketMQ.
        ("192.168.1-10.5-20", ["192.168.1.1", "192.168.10.200"], ["192.168.11.5"]),
        ("192.168.0.5-20", ["192.168.0.5", "192.168.0.20"], ["192.168.0.4", "192.168.0.21"]),
        ("1:2:3:4:5:6:7:*", ["1:2:3:4:5:6:7:9"], ["1:2:3:4:5:6:8:9", "10.0.0.1"]),
        ("1:2:3:4:5:6:a-c:*", ["1:2:3:4:5:6:b:9"], ["1:2:3:4:5:6:d:9"]),
        ("10.0.0.1", ["10.0.0.1", "::ffff:10.0.0.1"], ["10.0.0.2"]),
        ("0:0:0:0:0:0:0:1", ["::1"], ["::2"]),
    ],
)
def test_forms(form: str, inside: list[str], outside: list[str]) -> None:
    matches = matcher(form)
    assert [one for one in inside if not matches(one)] == []
    assert [one for one in outside if matches(one)] == []


@pytest.mark.parametrize(
    "form",
    [
        "nowhere",
        "10.0.0",
        "10.0.0.256",
        "10.0.0.{1,x}",
        "10.0.0.1}",
        "10.0.x-y.1",
        "1::*",
        "a-b:*",
        "10.0.0.1,*",
    ],
)
def test_what_is_no_form_is_refused(form: str) -> None:
    with pytest.raises(ConfigError, match="Netaddress examine Exception netaddress is"):
        matcher(form)


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ConfigError, match="Netaddress examine scope Exception"):
        matcher("10.0.20-10.1")


def test_what_is_no_address_matches_nothing() -> None:
    assert not matcher("10.0.0.*")("unconnected")
