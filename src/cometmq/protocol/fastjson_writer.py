"""The writer behind ``fastjson``: structs, maps and lists as Java's fastjson would print them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from cometmq.model.message_queue import MessageQueue

_encode = msgspec.json.Encoder().encode
_PLAIN = frozenset([str, int, bool])
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def write(value: Any, *, standard: bool) -> bytes:
    """See ``fastjson.dumps`` and ``fastjson.dumps_standard``."""
    parts: list[bytes] = []
    _write(value, parts, standard)
    text = b"".join(parts)
    if standard and not text.isascii():
        # Outside strings JSON is ASCII, so any other character is inside a string and may be escaped there.
        return _NOT_ASCII.sub(_escaped, text.decode()).encode()
    return text


def _write(value: Any, parts: list[bytes], standard: bool) -> None:
    # Nearly all values are plain; checking this last would be most of the work.
    if type(value) in _PLAIN:
        parts.append(_encode(value))
    elif isinstance(value, msgspec.Struct):
        opening = b"{"
        for attribute, key, omit_zero in _fields(type(value)):
            item = getattr(value, attribute)
            if item is not None and (item or not omit_zero):
                parts.append(opening + key)
                _write(item, parts, standard)
                opening = b","
        parts.append(b"}" if opening == b"," else b"{}")
    elif isinstance(value, Mapping):
        _write_map(value, parts, standard)
    elif isinstance(value, list | tuple | set | frozenset):
        opening = b"["
        for item in value:
            parts.append(opening)
            _write(item, parts, standard)
            opening = b","
        parts.append(b"]" if opening == b"," else b"[]")
    elif isinstance(value, float):
        parts.append(_java_double(value))
    else:
        parts.append(_encode(value))


def _write_map(pairs: Mapping[Any, Any], parts: list[bytes], standard: bool) -> None:
    entries = [(_key(key, standard), value) for key, value in pairs.items() if value is not None]
    if standard:
        entries.sort(key=lambda entry: entry[0])
    opening = b"{"
    for text, value in entries:
        parts.append(opening + text + b":")
        _write(value, parts, standard)
        opening = b","
    parts.append(b"}" if opening == b"," else b"{}")


def _key(key: Any, standard: bool) -> bytes:
    if isinstance(key, str):
        return _encode(key)
    if isinstance(key, int):
        return b'"%d"' % key if standard else b"%d" % key
    assert isinstance(key, MessageQueue), key
    text = _encode(key)
    return _encode(text.decode()) if standard else text


@lru_cache(maxsize=1024)
def _fields(struct_class: type[msgspec.Struct]) -> tuple[tuple[str, bytes, bool], ...]:
    """Attribute, ``"key":`` and whether 0 is left out, for each field, sorted by key."""
    omitted = getattr(struct_class, "OMITTED_WHEN_ZERO", ())
    pairs = zip(struct_class.__struct_encode_fields__, struct_class.__struct_fields__, strict=True)
    return tuple(
        (attribute, _encode(key) + b":", attribute in omitted) for key, attribute in sorted(pairs)
    )


def _java_double(value: float) -> bytes:
    """Like ``Double.toString``: always with a fraction, and ``1.0E10`` where Python prints ``10000000000.0``."""
    if value != value or value in (float("inf"), float("-inf")):
        return b"null"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value).encode()
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    plain = "".join(map(str, digits))
    fraction = plain[1:].rstrip("0") or "0"
    return f"{'-' * sign}{plain[0]}.{fraction}E{exponent + len(plain) - 1}".encode()


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))
