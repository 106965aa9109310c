"""Records of a message trace survive the way through text, in any number."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.trace import (
    ConsumeCode,
    EndTransactionTrace,
    PubTrace,
    RecallTrace,
    SubAfterTrace,
    SubBeforeTrace,
    TraceMessageType,
    TraceRecord,
    decode_traces,
    encode_trace,
    trace_keys,
)

TEXT = st.text(min_size=1, max_size=12).filter(
    lambda text: "\x01" not in text and "\x02" not in text and text != "null"
)
MAYBE = TEXT | st.none()
TIME = st.integers(0, 2**62)
NUMBER = st.integers(0, 2**31 - 1)
FLAG = st.booleans()
TYPE = st.sampled_from(TraceMessageType)

RECORD: st.SearchStrategy[TraceRecord] = st.one_of(
    st.builds(
        RecallTrace,
        timestamp=TIME,
        region_id=MAYBE,
        group=MAYBE,
        topic=MAYBE,
        message_id=TEXT,
        is_success=FLAG,
    ),
    st.builds(
        PubTrace,
        timestamp=TIME,
        region_id=MAYBE,
        group=MAYBE,
        topic=MAYBE,
        message_id=TEXT,
        tags=MAYBE,
        keys=MAYBE,
        store_host=MAYBE,
        body_bytes=NUMBER,
        cost_ms=NUMBER,
        message_type=TYPE,
        offset_id=MAYBE,
        is_success=FLAG,
    ),
    st.builds(
        SubBeforeTrace,
        timestamp=TIME,
        region_id=MAYBE,
        group=MAYBE,
        request_id=TEXT,
        message_id=TEXT,
        retry_times=NUMBER,
        keys=MAYBE,
    ),
    st.builds(
        SubAfterTrace,
        request_id=TEXT,
        message_id=TEXT,
        cost_ms=NUMBER,
        is_success=FLAG,
        keys=MAYBE,
        context_code=st.sampled_from(ConsumeCode),
        timestamp=TIME | st.none(),
        group=MAYBE,
    ),
    st.builds(
        EndTransactionTrace,
        timestamp=TIME,
        region_id=MAYBE,
        group=MAYBE,
        topic=MAYBE,
        message_id=TEXT,
        tags=MAYBE,
        keys=MAYBE,
        store_host=MAYBE,
        message_type=TYPE,
        transaction_id=MAYBE,
        state=st.sampled_from(["COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW"]),
        is_from_check=FLAG,
    ),
)


@given(st.lists(RECORD, max_size=8))
def test_records_round_trip(records: list[TraceRecord]) -> None:
    assert decode_traces("".join(map(encode_trace, records))) == records


@given(RECORD)
def test_no_record_ends_with_an_empty_field(record: TraceRecord) -> None:
    # Java drops empty fields at the end and then counts too few.
    assert not encode_trace(record).endswith("\x01\x02")


@given(st.lists(RECORD, max_size=5))
def test_keys_have_every_id_once(records: list[TraceRecord]) -> None:
    keys = trace_keys(records)
    assert len(keys) == len(set(keys))
    assert {record.message_id for record in records} <= set(keys)


@given(st.text("aPubSfterEndTransaction\x01\x020123true", max_size=120))
def test_any_other_text_is_refused_or_read(text: str) -> None:
    with contextlib.suppress(RemoteProtocolError):
        decode_traces(text)
