"""Custom headers: typed structs here, strings by Java's field names on the wire.

A header class is a ``msgspec.Struct``; ``wire("a")`` names the key where it differs from the camel-cased Python name.
Decoding converts the ext map in C (strings to int or bool); encoding writes what is not None.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, TypeVar, get_args, get_type_hints

import msgspec

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.ids import Int32, Int64

__all__ = ["Header", "Int32", "Int64", "decode_fields", "encode_fields", "wire"]

_JAVA_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_INTEGER_CHARS_MAX: Final = 32


class Header(msgspec.Struct, kw_only=True, rename="camel"):
    """Base class of all custom headers."""


H = TypeVar("H", bound=Header)


def wire(key: str, *, default: Any = msgspec.NODEFAULT) -> Any:
    """A header field whose wire key is not simply its name in camel case."""
    return msgspec.field(name=key, default=default)


def decode_fields(header_class: type[H], ext: dict[str, str] | None) -> H:
    """A typed header from the ext map; unknown keys are ignored.

    Raises:
        RemoteProtocolError: a required field is missing, or a value is not of the field's type.
    """
    try:
        return msgspec.convert(ext or {}, header_class, strict=False)
    except msgspec.ValidationError as first:
        repaired = _as_java_reads(header_class, ext or {})
        try:
            return msgspec.convert(repaired, header_class, strict=False)
        except msgspec.ValidationError:
            raise RemoteProtocolError(f"{header_class.__name__}: {first}") from None


def encode_fields(header: Header) -> dict[str, str]:
    """The ext map of a header. None is left out, booleans are ``true``/``false``."""
    ext: dict[str, str] = {}
    for key, value in zip(
        header.__struct_encode_fields__, msgspec.structs.astuple(header), strict=True
    ):
        if value is None:
            continue
        if value is True:
            ext[key] = "true"
        elif value is False:
            ext[key] = "false"
        else:
            ext[key] = str(value)
    return ext


def _as_java_reads(header_class: type[Header], ext: dict[str, str]) -> dict[str, Any]:
    """Normalise what Java accepts and msgspec does not: any text as a boolean, ``+5`` and ``007`` as integers.

    An empty string counts as absent where an integer is expected: that is how Java reads it from a binary header.
    """
    repaired: dict[str, Any] = dict(ext)
    for key, kinds in _kinds(header_class).items():
        text = repaired.get(key)
        if text is None:
            continue
        if bool in kinds:
            repaired[key] = text.lower() == "true"
        elif int in kinds and not text:
            del repaired[key]
        elif int in kinds and len(text) <= _INTEGER_CHARS_MAX and _JAVA_INTEGER.match(text):
            repaired[key] = int(text)
    return repaired


@lru_cache(maxsize=1024)
def _kinds(header_class: type[Header]) -> dict[str, tuple[Any, ...]]:
    """The plain types of each field, by wire key."""
    hints = get_type_hints(header_class)
    return {
        key: get_args(hints[attribute]) or (hints[attribute],)
        for attribute, key in zip(
            header_class.__struct_fields__, header_class.__struct_encode_fields__, strict=True
        )
    }
