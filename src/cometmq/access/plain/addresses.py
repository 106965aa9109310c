"""White addresses of RocketMQ 4: which sources they match.

    (empty)                          none
    *, *.*.*.*, *:*:*:*:*:*:*:*      all
    10.1.1.{1,2,3}                   any of these
    10.1.1.1,10.1.2.1                any of these
    10.1.1-9.*, 10.1.1.*             one range; what comes after it is ignored, as in RocketMQ
    a:b:c:d:e:f:1-9:*                the same in IPv6, in hexadecimal
    10.1.1.1                         this one

The first octet cannot vary. No networks by prefix length.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from functools import lru_cache

from cometmq.base.errors import ConfigError

Matches = Callable[[str], bool]
"""Whether an address, as text, is meant."""

_EVERYWHERE = ("*", "*.*.*.*", "*:*:*:*:*:*:*:*")
_ALTERNATIVES_MAX = 1000


def matcher(text: str) -> Matches:
    """Raises ConfigError: it is no such form."""
    text = text.strip()
    if not text:
        return lambda address: False
    if text in _EVERYWHERE:
        return lambda address: True
    if text.endswith("}"):
        return _any_of(_expanded(text), text)
    if "," in text:
        return _any_of(text.split(","), text)
    if "*" in text or "-" in text:
        return _range_v6(text) if ":" in text else _range_v4(text)
    return _any_of([text], text)


def _expanded(text: str) -> list[str]:
    separator = ":" if ":" in text else "."
    start, found, last = text.rpartition(separator)
    if not found or not last.startswith("{"):
        raise _bad(text)
    return [f"{start}{separator}{part.strip()}" for part in last[1:-1].split(",")]


def _any_of(texts: list[str], whole: str) -> Matches:
    if len(texts) > _ALTERNATIVES_MAX:
        raise _bad(whole)
    try:
        meant = frozenset(ipaddress.ip_address(one.strip()) for one in texts)
    except ValueError:
        raise _bad(whole) from None
    return lambda address: _address(address) in meant


def _range_v4(text: str) -> Matches:
    octets = text.split(".")
    if len(octets) != 4:
        raise _bad(text)
    for at in range(1, 4):
        if octets[at] == "*" or "-" in octets[at]:
            return _range(octets[:at], octets[at], text, base=10, highest=255, version=4)
        _number(octets[at - 1], text, 10, 255)
    raise _bad(text)


def _range_v6(text: str) -> Matches:
    if not text.endswith(":*") and "-" not in text:
        raise _bad(text)
    parts = text.split(":")
    if parts[-1] == "*":
        parts.pop()
        if not parts or "-" not in parts[-1]:
            return _range(_whole_v6(parts, text), "*", text, base=16, highest=0xFFFF, version=6)
    return _range(_whole_v6(parts[:-1], text), parts[-1], text, base=16, highest=0xFFFF, version=6)


def _whole_v6(parts: list[str], text: str) -> list[str]:
    """The leading groups of an address, none of them left out."""
    if "" in parts or not 1 <= len(parts) <= 7:
        raise _bad(text)
    return parts


def _range(
    start: list[str], varying: str, text: str, *, base: int, highest: int, version: int
) -> Matches:
    fixed = tuple(_number(part, text, base, highest) for part in start)
    low, high = 0, highest
    if varying != "*":
        first, dash, last = varying.partition("-")
        if not dash:
            raise _bad(text)
        low, high = (_number(part, text, base, highest) for part in (first, last))
        if low > high:
            raise ConfigError(f"Netaddress examine scope Exception netaddress is {text}")

    def matches(address: str) -> bool:
        found = _address(address)
        if found is None or found.version != version:
            return False
        size = 1 if version == 4 else 2
        packed = found.packed
        numbers = tuple(
            int.from_bytes(packed[at : at + size]) for at in range(0, len(packed), size)
        )
        return numbers[: len(fixed)] == fixed and low <= numbers[len(fixed)] <= high

    return matches


def _number(part: str, text: str, base: int, highest: int) -> int:
    try:
        number = int(part.strip(), base)
    except ValueError:
        raise _bad(text) from None
    if not 0 <= number <= highest:
        raise _bad(text)
    return number


@lru_cache(maxsize=4096)
def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def _bad(text: str) -> ConfigError:
    return ConfigError(f"Netaddress examine Exception netaddress is {text}")
