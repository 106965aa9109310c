from __future__ import annotations

import pytest

from cometmq.spark.errors import BadOption
from cometmq.spark.sink.sink_options import BATCH_BYTES, read_sink_options

BASE = {"nameServers": "127.0.0.1:9876"}


def test_defaults() -> None:
    options = read_sink_options(BASE | {"path": "orders", "checkpointLocation": "/c"})
    assert (options.topic, options.sink_id, options.batch_id) == ("orders", "", None)
    assert (options.exactly_once, options.batch_bytes) == ("auto", BATCH_BYTES)
    assert (options.columns.body, options.columns.id) == ("body", "")
    assert options.given_columns == frozenset()


def test_all_given() -> None:
    options = read_sink_options(
        BASE
        | {
            "TOPIC": "T",
            "sinkid": "s-1",
            "batchId": "0",
            "exactlyOnce": "require",
            "batchBytes": "1m",
            "sendTimeout": "2s",
            "retryTimeout": "1m",
            "bodyColumn": "value",
            "idColumn": "id",
            "secretKey": "hidden",
            "accessKey": "me",
        }
    )
    assert (options.sink_id, options.batch_id, options.exactly_once) == ("s-1", 0, "require")
    assert (options.batch_bytes, options.send_seconds, options.retry_seconds) == (1 << 20, 2, 60)
    assert (options.columns.body, options.columns.id) == ("value", "id")
    assert options.given_columns == {"body", "id"}
    assert "hidden" not in repr(options)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"topic": "a b"}, "topic"),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, "belongs to the system"),
        ({"topic": "T", "path": "U"}, "expected one topic, got 'T' and 'U'"),
        ({"sinkId": "a/b"}, "expected a sink id"),
        ({"batchId": "3"}, "give sinkId as well"),
        ({"batchBytes": "5m"}, "expected at most 4194304"),
        ({"exactlyOnce": "maybe"}, "expected one of auto, require, off"),
        ({"producerGroup": "a b"}, "producerGroup"),
        ({"tagColumn": "t"}, "did you mean tagsColumn"),
    ],
)
def test_mistakes(wrong: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadOption, match=complaint):
        read_sink_options(BASE | wrong)
