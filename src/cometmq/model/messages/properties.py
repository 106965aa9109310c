"""Message properties: the reserved names, and the text format ``key 0x01 value 0x02 …``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NAME_SEPARATOR: Final = "\x01"
PAIR_SEPARATOR: Final = "\x02"
TEXT_BYTES_MAX: Final = 32767

KEYS: Final = "KEYS"
TAGS: Final = "TAGS"
WAIT: Final = "WAIT"
DELAY: Final = "DELAY"
UNIQ_KEY: Final = "UNIQ_KEY"
RETRY_TOPIC: Final = "RETRY_TOPIC"
REAL_TOPIC: Final = "REAL_TOPIC"
REAL_QUEUE_ID: Final = "REAL_QID"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
TRANSACTION_PREPARED: Final = "TRAN_MSG"
PRODUCER_GROUP: Final = "PGROUP"
TRANSACTION_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
CHECK_IMMUNITY_SECONDS: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
PREPARED_QUEUE_OFFSET: Final = "TRAN_PREPARED_QUEUE_OFFSET"
MSG_REGION: Final = "MSG_REGION"
TRACE_ON: Final = "TRACE_ON"
CLUSTER: Final = "CLUSTER"
SHARDING_KEY: Final = "__SHARDINGKEY"
CORRELATION_ID: Final = "CORRELATION_ID"
REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
TTL: Final = "TTL"
MESSAGE_TYPE: Final = "MSG_TYPE"
PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"
RECONSUME_TIME: Final = "RECONSUME_TIME"
MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
MIN_OFFSET: Final = "MIN_OFFSET"
MAX_OFFSET: Final = "MAX_OFFSET"
TIMER_DELAY_SEC: Final = "TIMER_DELAY_SEC"
TIMER_DELAY_MS: Final = "TIMER_DELAY_MS"
TIMER_DELIVER_MS: Final = "TIMER_DELIVER_MS"
POP_HANDLE: Final = "POP_CK"
SINK: Final = "__SINK"
"""Our extension: which sink, partition and batch a message comes from; see ``sink_mark``."""

BODY_ERROR: Final = "__BODY_ERROR"
"""Our extension, only in Spark rows: why the body is not decompressed."""

RESERVED: Final = frozenset(
    [
        "KEYS",
        "TAGS",
        "WAIT",
        "DELAY",
        "RETRY_TOPIC",
        "REAL_TOPIC",
        "REAL_QID",
        "TRAN_MSG",
        "PGROUP",
        "MIN_OFFSET",
        "MAX_OFFSET",
        "BUYER_ID",
        "ORIGIN_MESSAGE_ID",
        "TRANSFER_FLAG",
        "CORRECTION_FLAG",
        "MQ2_FLAG",
        "RECONSUME_TIME",
        "MSG_REGION",
        "TRACE_ON",
        "UNIQ_KEY",
        "EXTEND_UNIQ_INFO",
        "MAX_RECONSUME_TIMES",
        "CONSUME_START_TIME",
        "TRAN_PREPARED_QUEUE_OFFSET",
        "DUP_INFO",
        "TRANSACTION_CHECK_TIMES",
        "CHECK_IMMUNITY_TIME_IN_SECONDS",
        "INSTANCE_ID",
        "CORRELATION_ID",
        "REPLY_TO_CLIENT",
        "TTL",
        "ARRIVE_TIME",
        "PUSH_REPLY_TIME",
        "CLUSTER",
        "MSG_TYPE",
        "POP_CK",
        "1ST_POP_TIME",
        "INNER_NUM",
        "INNER_BASE",
        "TIMER_DELAY_SEC",
        "TIMER_DELAY_MS",
        "TIMER_DELIVER_MS",
        "TIMER_OUT_MS",
        "TIMER_ENQUEUE_MS",
        "TIMER_DEQUEUE_MS",
        "TIMER_ROLL_TIMES",
        "TIMER_DEL_UNIQKEY",
        "TIMER_DELAY_LEVEL",
        "DLQ_ORIGIN_TOPIC",
        "DLQ_ORIGIN_MESSAGE_ID",
        "__BORNHOST",
        "BORN_TIMESTAMP",
        "INNER_MULTI_DISPATCH",
        "INNER_MULTI_QUEUE_OFFSET",
        "__SINK",
        "__BODY_ERROR",
    ]
)
"""Names that the system uses; user properties must not use them."""


def parse_properties(text: str) -> dict[str, str]:
    """The pairs of a property text. Parts without a name and a value are skipped; the last of a name wins."""
    pairs: dict[str, str] = {}
    for part in text.split(PAIR_SEPARATOR):
        name, separator, value = part.partition(NAME_SEPARATOR)
        # Java splits a part at every separator and accepts exactly two pieces.
        if separator and name and value and NAME_SEPARATOR not in value:
            pairs[name] = value
    return pairs


def render_properties(pairs: Mapping[str, str]) -> str:
    """The text of the pairs, with a trailing separator so that a later writer can append to it."""
    return "".join(
        f"{name}{NAME_SEPARATOR}{value}{PAIR_SEPARATOR}" for name, value in pairs.items()
    )


def property_of(text: str, name: str) -> str | None:
    """One value from a property text, without parsing the rest: the last of the name, as in ``parse_properties``."""
    marker = name + NAME_SEPARATOR
    found: str | None = None
    start = 0
    while (at := text.find(marker, start)) >= 0:
        start = at + len(marker)
        if at > 0 and text[at - 1] != PAIR_SEPARATOR:
            continue
        end = text.find(PAIR_SEPARATOR, start)
        value = text[start:] if end < 0 else text[start:end]
        if value and NAME_SEPARATOR not in value:
            found = value
    return found


class PropertyText:
    """The pairs of a property text, looked up one by one: cheaper than a dict if only a few are needed."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def get(self, name: str) -> str | None:
        return property_of(self._text, name)


def split_keys(keys: str | None) -> list[str]:
    """The blank-separated keys of a message; duplicates are kept, because the index contains them, too."""
    return [key for key in keys.split(" ") if key] if keys else []
