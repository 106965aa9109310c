"""JSON as fastjson reads and writes it, which is the form of RocketMQ's bodies and config files.

Beyond the standard it has integer keys without quotes ``{0:"a"}``, objects as keys ``{{"queueId":0,..}:5}`` and
``{"$ref":"$.a"}`` in place of an object that was already written. Reading takes the C decoder whenever the text
is standard or becomes so by quoting its integer keys; only the rest goes through ``fastjson_reader``.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

import msgspec

from cometmq.base.errors import RemoteProtocolError
from cometmq.protocol import fastjson_reader, fastjson_writer

T = TypeVar("T")

# A whole string, to step over it; or what stands before an integer key, and that key.
_INTEGER_KEY = re.compile(rb'"(?:[^"\\]++|\\.)*+"|([{,]\s*+)(-?\d++)(?=\s*+:)', re.DOTALL)


LOOSE_BODY_BYTES_MAX: Final = 256 * 1024
"""Largest body of a request that may need the slow reader: a hostile one holds the event loop for 0.1 s at most."""


def loads(data: bytes | str, *, loose_bytes_max: int = fastjson_reader.TEXT_BYTES_MAX) -> Any:
    """The value of a fastjson text: keys are str, an object used as a key becomes its compact JSON text.

    Args:
        loose_bytes_max: refuse a larger text unless it is strict JSON but for integer keys.

    Raises:
        RemoteProtocolError: not JSON by any reading, nested too deeply, too large, or not UTF-8.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    value = _standard(raw)
    if value is None:
        return fastjson_reader.read(raw, bytes_max=loose_bytes_max)
    return fastjson_reader.resolve(value[0]) if b'"$ref"' in raw else value[0]


def decode(data: bytes | memoryview, wanted: type[T], *, what: str | None = None) -> T:
    """The body as a typed value; unknown keys are ignored, numbers may come as texts.

    A table keyed by ``MessageQueue`` may be typed as such: object keys become queues.

    Raises:
        RemoteProtocolError: naming ``what`` was expected.
    """
    raw = bytes(data)
    decoder = _decoder(cast(Hashable, wanted))
    if decoder is not None and b'"$ref"' not in raw:
        try:
            return cast(T, decoder.decode(raw))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            pass
    try:
        if decoder is not None:
            return convert(loads(raw, loose_bytes_max=LOOSE_BODY_BYTES_MAX), wanted)
        return convert(fastjson_reader.read(raw, queue_keys=True), wanted)
    except RemoteProtocolError as error:
        raise RemoteProtocolError(
            f"expected a {what or wanted.__name__} as body: {error}"
        ) from None


def convert(value: Any, wanted: type[T]) -> T:
    """A read value as a typed one. A null counts as absent, as it does in Java beans. Raises RemoteProtocolError."""
    try:
        return msgspec.convert(value, wanted, strict=False)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert(_without_nulls(value), wanted, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise RemoteProtocolError(str(error)) from None


def dumps(value: Any) -> bytes:
    """fastjson's own form: struct fields sorted by name, None left out, integer and queue keys unquoted."""
    return fastjson_writer.write(value, standard=False)


def dumps_standard(value: Any) -> bytes:
    """Strict JSON: every key quoted, map keys sorted, nothing but ASCII. RocketMQ's form for newer clients."""
    return fastjson_writer.write(value, standard=True)


@lru_cache(maxsize=256)
def _decoder(wanted: Hashable) -> msgspec.json.Decoder[Any] | None:
    """None for a type that holds a table keyed by objects, which strict JSON cannot have."""
    if _has_object_keys(msgspec.inspect.type_info(wanted)):
        return None
    return msgspec.json.Decoder(cast(type[Any], wanted), strict=False)


def _has_object_keys(info: msgspec.inspect.Type) -> bool:
    if isinstance(info, msgspec.inspect.DictType):
        is_object = isinstance(info.key_type, msgspec.inspect.StructType)
        return is_object or _has_object_keys(info.value_type)
    if isinstance(info, msgspec.inspect.StructType):
        return any(_has_object_keys(field.type) for field in info.fields)
    if isinstance(info, msgspec.inspect.ListType):
        return _has_object_keys(info.item_type)
    if isinstance(info, msgspec.inspect.UnionType):
        return any(map(_has_object_keys, info.types))
    return False


def _standard(raw: bytes) -> tuple[Any] | None:
    """The value in a tuple, or None when the C decoder cannot read the text even with its integer keys quoted."""
    try:
        return (msgspec.json.decode(raw),)
    except RecursionError:
        raise RemoteProtocolError("JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return (msgspec.json.decode(_INTEGER_KEY.sub(_quoted, raw)),)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _quoted(match: re.Match[bytes]) -> bytes:
    before, key = match.groups()
    return match[0] if key is None else before + b'"' + key + b'"'
