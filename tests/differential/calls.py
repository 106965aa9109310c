"""Decoders that have a twin, called with the same bytes: what they return, or the error that they raise.

The bytes are mutated records of RocketMQ's brokers, whole replies to pulls among them.
"""

from __future__ import annotations

import importlib.util
import zlib
from collections.abc import Callable
from random import Random
from typing import Any, Final, NamedTuple

from tests.hostile.decoders import record_samples
from tests.hostile.mutator import Mutator

from cometmq.base.errors import CometError
from cometmq.model.messages.received_message import ReceivedMessage, decode_messages
from cometmq.model.messages.record import BadRecord, decode_records

INPUTS: Final = 100
TAGS: Final = (None, "*", "TagA", "a || b")
FIELDS: Final = (
    *("topic", "queue_id", "queue_offset", "body", "tags", "keys", "message_id"),
    *("born_host", "store_host", "born_timestamp", "store_timestamp", "reconsume_times"),
)


class Calls(NamedTuple):
    """Names of decoders, and what each gets."""

    inputs: list[tuple[str, bytes]]


class Answers(NamedTuple):
    found: list[tuple[str, Any]]
    """For each input, what was returned, or which error was raised."""


def calls(seed: int) -> Calls:
    random = Random(seed)
    mutator = Mutator(record_samples())
    names = [name for name in DECODERS if name != "spark" or has_arrow()]
    return Calls([(random.choice(names), mutator.make(random)) for _ in range(INPUTS)])


def has_arrow() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def answers(asked: Calls) -> Answers:
    return Answers([_answer(name, data) for name, data in asked.inputs])


def _answer(name: str, data: bytes) -> tuple[str, Any]:
    try:
        return "returned", DECODERS[name](data)
    except (BadRecord, CometError, ValueError) as error:
        return type(error).__name__, str(error)


def _messages(data: bytes) -> object:
    return [_plain(message) for message in decode_messages(data, "broker")]


def _plain(message: ReceivedMessage) -> dict[str, str]:
    # As they are read, for most of it is decoded only then.
    return {
        **{name: repr(_read(message, name)) for name in FIELDS},
        "properties": repr(_read(message, "properties")),
    }


def _read(message: ReceivedMessage, name: str) -> object:
    try:
        return getattr(message, name)
    except (BadRecord, CometError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def _records(data: bytes) -> object:
    return [repr(record) for record in decode_records(data, check_crc=len(data) % 2 == 0)]


def _spark(data: bytes) -> object:
    import pyarrow as pa

    from cometmq.spark.columns.decode import UndecodableRecord, decode
    from cometmq.spark.columns.schema import COLUMNS

    # The rest of the wish follows from the bytes, too.
    random = Random(zlib.crc32(data))
    columns = [name for name in COLUMNS if random.random() < 0.7] or ["body"]
    first = random.choice((None, None, 0, 1, 5, 2**62))
    last = random.choice((None, None, 0, 3, -1))
    try:
        made = decode(
            data,
            None,
            columns,
            "broker",
            first_offset=first,
            last_offset=last,
            tag=random.choice(TAGS),
            check_crc=random.random() < 0.2,
        )
    except UndecodableRecord as error:
        return f"UndecodableRecord: {error}"
    made.validate(full=True)
    # Python's times do not reach as far as Arrow's.
    return {
        name: (
            made.column(name).cast(pa.int64())
            if pa.types.is_timestamp(made.schema.field(name).type)
            else made.column(name)
        ).to_pylist()
        for name in columns
    }


DECODERS: Final[dict[str, Callable[[bytes], object]]] = {
    "messages": _messages,
    "records": _records,
    "spark": _spark,
}
