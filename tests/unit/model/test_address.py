"""Addresses as peers write them."""

from __future__ import annotations

import pytest

from cometmq.base.errors import UsageError
from cometmq.model.address import split_address


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("127.0.0.1:9876", ("127.0.0.1", 9876)),
        (" broker-1.example.com:10911 ", ("broker-1.example.com", 10911)),
        ("broker.example.com.:1", ("broker.example.com.", 1)),
        ("[::1]:10911", ("::1", 10911)),
        ("fe80::1%eth0:10911", ("fe80::1%eth0", 10911)),
        ("bücher.example:10911", ("bücher.example", 10911)),
    ],
)
def test_host_and_port(text: str, parts: tuple[str, int]) -> None:
    assert split_address(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1",
        ":9876",
        "host:",
        "host:0",
        "host:65536",
        "host:-1",
        # A name server may send these in a route; the system's functions fail on them in several ways.
        "host\0:9876",
        "host\n:9876",
        "a..b:9876",
        f"{'x' * 64}:9876",
        "\udc80:9876",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="expected an address"):
        split_address(text)
