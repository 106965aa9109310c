"""Custom headers: typed structs here, texts by Java's field name on the wire.

A header class is a ``msgspec.Struct``; ``wire("a")`` names the key where it differs from the camel-cased Python name.
Decoding converts the ext map in C (text to int, to bool); encoding writes what is not None.
"""

from __future__ import annotations

import types
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.ids import Int32, Int64

__all__ = ["Header", "Int32", "Int64", "decode_fields", "encode_fields", "wire"]


class Header(msgspec.Struct, kw_only=True, rename="camel"):
    """Base of all custom headers."""


H = TypeVar("H", bound=Header)


def wire(key: str, *, default: Any = msgspec.NODEFAULT) -> Any:
    """A header field whose wire key is not simply its name in camel case."""
    return msgspec.field(name=key, default=default)


def decode_fields(header_class: type[H], ext: dict[str, str] | None) -> H:
    """A typed header from the ext map; unknown keys are ignored.

    Raises:
        RemoteProtocolError: a required field is missing, or a text is not of the field's type.
    """
    try:
        return msgspec.convert(ext or {}, header_class, strict=False)
    except msgspec.ValidationError as first:
        repaired = _java_booleans(header_class, ext or {})
        try:
            return msgspec.convert(repaired, header_class, strict=False)
        except msgspec.ValidationError:
            raise RemoteProtocolError(f"{header_class.__name__}: {first}") from None


def encode_fields(header: Header) -> dict[str, str]:
    """The ext map of a header. None is left out, booleans are ``true``/``false``."""
    ext: dict[str, str] = {}
    for attribute, key in zip(
        header.__struct_fields__, header.__struct_encode_fields__, strict=True
    ):
        value = getattr(header, attribute)
        if value is None:
            continue
        if value is True:
            ext[key] = "true"
        elif value is False:
            ext[key] = "false"
        else:
            ext[key] = str(value)
    return ext


def _java_booleans(header_class: type[Header], ext: dict[str, str]) -> dict[str, Any]:
    """Java reads any text but ``true`` as false; msgspec refuses it, so such fields are settled here."""
    hints = get_type_hints(header_class)
    repaired: dict[str, Any] = dict(ext)
    for attribute, key in zip(
        header_class.__struct_fields__, header_class.__struct_encode_fields__, strict=True
    ):
        if key in repaired and _is_bool(hints[attribute]):
            repaired[key] = repaired[key].lower() == "true"
    return repaired


def _is_bool(hint: Any) -> bool:
    if get_origin(hint) in (Union, types.UnionType):
        return bool in get_args(hint)
    return hint is bool
