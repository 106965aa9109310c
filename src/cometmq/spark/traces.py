"""Trace messages as rows: one for each record that clients wrote about a send or a delivery."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.trace import PubTrace, SubAfterTrace, SubBeforeTrace, TraceRecord, decode_traces

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNDECODABLE: Final = "undecodable"

_SCHEMA: Final = (
    "kind string, at timestamp, group string, topic string, messageId string, requestId string, "
    "retryTimes int, costMs bigint, isSuccess boolean, reason string"
)
_ARROW: Final = pa.schema(
    [
        ("kind", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("messageId", pa.string()),
        ("requestId", pa.string()),
        ("retryTimes", pa.int32()),
        ("costMs", pa.int64()),
        ("isSuccess", pa.bool_()),
        ("reason", pa.string()),
    ]
)


def records(messages: DataFrame) -> DataFrame:
    """The records of trace messages; a message that is none is one row of kind ``undecodable``, with the reason.

    ``kind`` is RocketMQ's word: Pub for a send, SubBefore and SubAfter for a delivery, EndTransaction.
    """

    def decode_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [row for body in batch.column(0).to_pylist() for row in rows_of(body)]
            yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)

    return messages.select("body").mapInArrow(decode_all, _SCHEMA)


def rows_of(body: bytes | None) -> list[dict[str, Any]]:
    try:
        return [_row(record) for record in decode_traces((body or b"").decode())]
    except (RemoteProtocolError, UnicodeDecodeError) as error:
        return [{"kind": UNDECODABLE, "reason": str(error)}]


def _row(record: TraceRecord) -> dict[str, Any]:
    at = record.timestamp
    row: dict[str, Any] = {
        "kind": record.WORD,
        "at": None if at is None else at * 1000,
        "group": record.group,
        "messageId": record.message_id,
    }
    if isinstance(record, PubTrace):
        row |= {"topic": record.topic, "costMs": record.cost_ms, "isSuccess": record.is_success}
    elif isinstance(record, SubBeforeTrace):
        row |= {"requestId": record.request_id, "retryTimes": record.retry_times}
    elif isinstance(record, SubAfterTrace):
        row |= {
            "requestId": record.request_id,
            "costMs": record.cost_ms,
            "isSuccess": record.is_success,
        }
    else:
        row |= {"topic": record.topic}
    return row
