"""JSON as fastjson reads and writes it, which is the form of RocketMQ's bodies and config files.

Beyond the standard, it has integer keys without quotes ``{0:"a"}``, objects as keys ``{{"queueId":0,..}:5}`` and
``{"$ref":"$.a"}`` in place of an object that was already written. Reading uses the C decoder if the text is standard
JSON, or becomes so by quoting its integer keys; only the rest goes through ``fastjson_reader``.

The sender of a body determines the cost of reading it, hence ``Limits``: bytes and values are counted before anything
is parsed, at a small fraction of the cost of parsing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol import fastjson_reader, fastjson_writer

T = TypeVar("T")

# Either a whole string, or the rest of the text after an unclosed quote, to skip it; or an integer key and what
# precedes it. A string always matches, closed or not, so that nothing is scanned twice.
_INTEGER_KEY = re.compile(rb'"(?:[^"\\]++|\\.)*+["\\]?+|([{,]\s*+)(-?\d++)(?=\s*+:)', re.DOTALL)

# A queue as a key, as Java writes it. Its quotes cannot be inside of a string, where they would be escaped.
_QUEUE_KEY = re.compile(
    rb'\{"brokerName":"([^"\\]*+)","queueId":(-?\d{1,10}+),"topic":"([^"\\]*+)"\}(?=\s*+:)'
)
_QUEUE_MARK: Final = "\x01"
"""Begins, and separates the parts of, the string that takes the place of such a key."""

LOOSE_VALUES_MAX: Final = 200_000
"""Maximum number of values of a body that is not strict JSON and needs several passes: about a microsecond each."""


class Limits(NamedTuple):
    """How large a body may be. Commas and brackets inside strings count as values, so be generous.

    ``bytes_max`` is not below ``values_max``.
    """

    bytes_max: int
    values_max: int
    loose_values_max: int = LOOSE_VALUES_MAX

    def check(self, raw: bytes, *, is_loose: bool = False) -> None:
        """Raise RemoteProtocolError for a text that exceeds them."""
        if len(raw) > self.bytes_max:
            raise RemoteProtocolError(
                f"JSON of {len(raw)} bytes, where at most {self.bytes_max} are taken"
            )
        values_max = self.values_max
        if is_loose:
            values_max = min(values_max, self.loose_values_max)
        fastjson_reader.check_values(raw, values_max)


BODY: Final = Limits(4 * 1024 * 1024, 100_000, loose_values_max=50_000)
"""For most requests and replies. No RocketMQ client comes close, and it takes a tenth of a second at worst."""

QUEUES: Final = Limits(16 * 1024 * 1024, LOOSE_VALUES_MAX)
"""For tables by queue: about 40,000 queues."""

TABLE: Final = Limits(64 * 1024 * 1024, 4_000_000, 4_000_000)
"""For what grows with a cluster: all its topics, groups or offsets. Only for replies from servers that we chose."""

FILE: Final = Limits(1 << 40, 1 << 40, 1 << 40)
"""For the server's own files."""


def loads(data: bytes | str, *, limits: Limits = FILE) -> Any:
    """The value of a fastjson text. Keys are str; an object used as a key becomes its compact JSON text.

    Raises:
        RemoteProtocolError: not JSON by any reading, nested too deeply, above the limits, or not UTF-8.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    limits.check(raw, is_loose=True)
    value = _standard(raw)
    if value is None:
        return fastjson_reader.read(raw)
    return fastjson_reader.resolve(value[0]) if b'"$ref"' in raw else value[0]


def decode(
    data: bytes | memoryview,
    wanted: type[T],
    *,
    what: str | None = None,
    limits: Limits = BODY,
    mend: Callable[[Any], None] | None = None,
) -> T:
    """The body as a typed value; unknown keys are ignored, numbers may be strings.

    A table keyed by ``MessageQueue`` may be typed as such: object keys become queues.

    Args:
        mend: modifies the value of a body that does not fit, before the conversion is tried again.

    Raises:
        RemoteProtocolError: naming ``what`` was expected.
    """
    raw = bytes(data)
    decoder = _decoder(cast(Hashable, wanted))
    try:
        # Every value takes at least a byte, so small bodies need no check.
        if len(raw) > limits.values_max:
            limits.check(raw)
        if decoder is None:
            tables = _queue_tables(raw)
            if tables is None:
                tables = fastjson_reader.read(raw, queue_keys=True)
            return convert(tables, wanted)
        if b'"$ref"' not in raw:
            try:
                return cast(T, decoder.decode(raw))
            except msgspec.ValidationError as error:
                _check_second_try(raw, limits, error)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                pass
        value = loads(raw, limits=limits)
        if mend is not None:
            mend(value)
        return convert(value, wanted)
    except RemoteProtocolError as error:
        raise RemoteProtocolError(
            f"expected a {what or wanted.__name__} as body: {error}"
        ) from None


def convert(value: Any, wanted: type[T]) -> T:
    """A parsed value as a typed one. A null counts as absent, as in Java beans. Raises RemoteProtocolError."""
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


def _check_second_try(raw: bytes, limits: Limits, fault: msgspec.ValidationError) -> None:
    """Raise the original error for a body that is too large to be read another way."""
    try:
        limits.check(raw, is_loose=True)
    except RemoteProtocolError:
        raise RemoteProtocolError(str(fault)) from None


@lru_cache(maxsize=256)
def _decoder(wanted: Hashable) -> msgspec.json.Decoder[Any] | None:
    """None for a type with a table keyed by objects, which strict JSON cannot have."""
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
    """The value in a tuple, or None if the C decoder cannot read the text even with its integer keys quoted."""
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


def _queue_tables(raw: bytes) -> Any:
    """The value of a text that is strict JSON but for keys that are queues; None if it is anything else.

    A tenth of what reading it character by character takes: tables by queue are the largest that brokers send.
    """
    if b'"$ref"' in raw or b'"{' in raw:
        return None
    try:
        value = msgspec.json.decode(_QUEUE_KEY.sub(rb'"\\u0001\1\\u0001\2\\u0001\3"', raw))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    try:
        return _with_queues(value)
    except ValueError:
        return None


def _with_queues(value: Any) -> Any:
    """Raises ValueError for a mark that we did not set, or a number that no queue has."""
    if isinstance(value, dict):
        for key in value:
            if key[:1] == _QUEUE_MARK:
                return {_marked_queue(key): _with_queues(item) for key, item in value.items()}
            break
        for key, item in value.items():
            if isinstance(item, (dict, list)):
                value[key] = _with_queues(item)
    elif isinstance(value, list):
        return [_with_queues(item) for item in value]
    return value


def _marked_queue(key: str) -> MessageQueue:
    _, broker_name, number, topic = key.split(_QUEUE_MARK)
    queue_id = int(number)
    if not -(1 << 31) <= queue_id < 1 << 31:
        raise ValueError(f"queue {queue_id}")
    return MessageQueue(broker_name, queue_id, topic)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _quoted(match: re.Match[bytes]) -> bytes:
    before, key = match.groups()
    return match[0] if key is None else before + b'"' + key + b'"'
