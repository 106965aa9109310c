"""Message traces in RocketMQ's format: what happened to a message at its producer and its consumers, as text.

    record 0x02 record 0x02 ...        a record is: type word 0x01 field 0x01 field ...

A missing field is the word ``null``. Other readers split at these two characters and count fields, so a field must
never contain one of them, and the last field of a record must not be empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, ClassVar, Final, TypeAlias

from cometmq.base.errors import RemoteProtocolError, UsageError

FIELD_SEPARATOR: Final = "\x01"
RECORD_END: Final = "\x02"
NULL: Final = "null"


class TraceMessageType(IntEnum):
    """Java's ``MessageType`` by its ordinal. A 4.9 reader knows the first four."""

    NORMAL = 0
    TRANSACTION_HALF = 1
    TRANSACTION_COMMIT = 2
    DELAY = 3
    ORDER = 4


class ConsumeCode(IntEnum):
    """How a listener call ended: Java's ``ConsumeReturnType`` by its ordinal."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    RETURN_NULL = 3
    FAILED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PubTrace:
    """A message was sent. Times in ms; ``region_id`` is the broker's region."""

    WORD: ClassVar[str] = "Pub"

    timestamp: int
    region_id: str | None
    group: str | None
    topic: str | None
    message_id: str
    tags: str | None
    keys: str | None
    store_host: str | None
    body_bytes: int
    cost_ms: int
    message_type: TraceMessageType
    offset_id: str | None
    is_success: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SubBeforeTrace:
    """A listener is about to get a message. ``request_id`` links it to the record of the result."""

    WORD: ClassVar[str] = "SubBefore"

    timestamp: int
    region_id: str | None
    group: str | None
    request_id: str
    message_id: str
    retry_times: int
    keys: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAfterTrace:
    """A listener is done with a message. ``timestamp`` and ``group`` are missing in records of old clients."""

    WORD: ClassVar[str] = "SubAfter"

    request_id: str
    message_id: str
    cost_ms: int
    is_success: bool
    keys: str | None
    context_code: ConsumeCode = ConsumeCode.SUCCESS
    timestamp: int | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionTrace:
    """A producer ended a transaction. ``state`` is COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW (sic)."""

    WORD: ClassVar[str] = "EndTransaction"

    timestamp: int
    region_id: str | None
    group: str | None
    topic: str | None
    message_id: str
    tags: str | None
    keys: str | None
    store_host: str | None
    message_type: TraceMessageType
    transaction_id: str | None
    state: str
    is_from_check: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallTrace:
    """A producer recalled a timed message, or tried to. Readers of 4.x skip such records."""

    WORD: ClassVar[str] = "Recall"

    timestamp: int
    region_id: str | None
    group: str | None
    topic: str | None
    message_id: str
    is_success: bool


TraceRecord: TypeAlias = (
    PubTrace | SubBeforeTrace | SubAfterTrace | EndTransactionTrace | RecallTrace
)

_KINDS: Final = (PubTrace, SubBeforeTrace, SubAfterTrace, EndTransactionTrace, RecallTrace)


def encode_trace(record: TraceRecord) -> str:
    """One record, including its terminator.

    Raises:
        UsageError: a field holds one of the separators.
    """
    parts = [record.WORD]
    parts += [_text(getattr(record, field.name)) for field in fields(record)]
    text = FIELD_SEPARATOR.join(parts)
    if RECORD_END in text or text.count(FIELD_SEPARATOR) != len(parts) - 1:
        raise UsageError(f"a field of this record holds \\x01 or \\x02: {record!r}")
    return text + RECORD_END


def decode_traces(text: str) -> list[TraceRecord]:
    """The records of a trace message, in order. Unknown kinds are left out.

    Raises:
        RemoteProtocolError: a record has too few fields, or one that cannot be parsed.
    """
    return [
        record for part in text.split(RECORD_END) if part and (record := _decode(part)) is not None
    ]


def trace_keys(records: Iterable[TraceRecord]) -> list[str]:
    """The keys of a trace message: ids and keys of the messages it describes, each once."""
    found: dict[str, None] = {}
    for record in records:
        found[record.message_id] = None
        keys = None if isinstance(record, RecallTrace) else record.keys
        for key in (keys or "").split(" "):
            if key:
                found[key] = None
    return list(found)


def _text(value: object) -> str:
    if value is None or value == "":
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, IntEnum):
        return str(int(value))
    return str(value)


def _decode(part: str) -> TraceRecord | None:
    word, *texts = part.split(FIELD_SEPARATOR)
    readers = _READERS.get(word)
    if readers is None:
        return None
    kind, known, needed = readers
    # Records of the first 4.x clients have no offset id before the last field.
    if kind is PubTrace and len(texts) == len(known) - 1:
        texts.insert(-1, NULL)
    if len(texts) < needed:
        raise RemoteProtocolError(
            f"a {word} record has at least {needed} fields, this one {len(texts)}: {part[:200]!r}"
        )
    try:
        # Later clients may add fields at the end.
        values = {
            name: read(text) for (name, read), text in zip(known.items(), texts, strict=False)
        }
    except ValueError as error:
        raise RemoteProtocolError(f"bad {word} record: {error}: {part[:200]!r}") from None
    return kind(**values)  # type: ignore[no-any-return]


def _text_or_none(text: str) -> str | None:
    return None if text in (NULL, "") else text


def _number_or_none(text: str) -> int | None:
    return None if text == NULL else int(text)


def _flag(text: str) -> bool:
    return text.lower() == "true"


_BY_ANNOTATION: Final[dict[str, Callable[[str], Any]]] = {
    "int": int,
    "int | None": _number_or_none,
    "str": str,
    "str | None": _text_or_none,
    "bool": _flag,
    "TraceMessageType": lambda text: TraceMessageType(int(text)),
    "ConsumeCode": lambda text: ConsumeCode(int(text)),
}


def _readers(kind: Any) -> tuple[Any, dict[str, Callable[[str], Any]], int]:
    by_name = {field.name: _BY_ANNOTATION[str(field.type)] for field in fields(kind)}
    # The code, the time and the group of SubAfter came later.
    return kind, by_name, len(by_name) - 3 if kind is SubAfterTrace else len(by_name)


_READERS: Final = {kind.WORD: _readers(kind) for kind in _KINDS}
