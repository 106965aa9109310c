"""The exact text of trace records, and what older and newer clients write."""

from __future__ import annotations

import pytest

from cometmq.base.errors import RemoteProtocolError, UsageError
from cometmq.model.trace import (
    ConsumeCode,
    PubTrace,
    RecallTrace,
    SubAfterTrace,
    TraceMessageType,
    decode_traces,
    encode_trace,
    trace_keys,
)

PUB = PubTrace(
    timestamp=1700000000000,
    region_id="DefaultRegion",
    group="orders",
    topic="Orders",
    message_id="0A",
    tags=None,
    keys="o-17 o-18",
    store_host="10.0.0.1:10911",
    body_bytes=3,
    cost_ms=7,
    message_type=TraceMessageType.DELAY,
    offset_id="0B",
    is_success=True,
)


def test_a_record_is_words_between_separators() -> None:
    assert encode_trace(PUB).split("\x01") == [
        "Pub",
        "1700000000000",
        "DefaultRegion",
        "orders",
        "Orders",
        "0A",
        "null",
        "o-17 o-18",
        "10.0.0.1:10911",
        "3",
        "7",
        "3",
        "0B",
        "true\x02",
    ]


def test_a_separator_inside_a_field_is_refused() -> None:
    for bad in ("a\x01b", "a\x02b"):
        record = SubAfterTrace(request_id="r", message_id=bad, cost_ms=0, is_success=True, keys="")
        with pytest.raises(UsageError, match="holds"):
            encode_trace(record)


def test_records_of_the_first_clients_lack_the_offset_id() -> None:
    old = encode_trace(PUB).replace("\x010B\x01", "\x01")
    [read] = decode_traces(old)
    assert isinstance(read, PubTrace)
    assert (read.offset_id, read.is_success) == (None, True)


def test_an_old_sub_after_ends_early() -> None:
    [read] = decode_traces("SubAfter\x01r\x01m\x0112\x01false\x01k\x02")
    assert read == SubAfterTrace(
        request_id="r", message_id="m", cost_ms=12, is_success=False, keys="k"
    )
    [read] = decode_traces("SubAfter\x01r\x01m\x0112\x01false\x01k\x014\x02")
    assert isinstance(read, SubAfterTrace)
    assert read.context_code is ConsumeCode.FAILED


def test_fields_and_kinds_of_later_clients_are_left_out() -> None:
    text = encode_trace(PUB).replace("\x02", "\x0110.0.0.9\x02") + "Later\x01whatever\x02"
    assert decode_traces(text) == [PUB]


@pytest.mark.parametrize("text", ["Pub\x0112\x02", "SubAfter\x01r\x01m\x01x\x01true\x01k\x02"])
def test_a_broken_record_is_an_error(text: str) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_traces(text)


def test_a_recall_is_written_as_rocketmq_5_does() -> None:
    record = RecallTrace(
        timestamp=12, region_id="R", group="g", topic="T", message_id="ID", is_success=True
    )
    assert encode_trace(record) == "Recall\x0112\x01R\x01g\x01T\x01ID\x01true\x02"
    assert decode_traces(encode_trace(record)) == [record]
    assert trace_keys([record, PUB])[0] == "ID"
