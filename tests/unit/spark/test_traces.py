"""Trace messages as rows."""

from __future__ import annotations

from cometmq.model.trace import SubAfterTrace, SubBeforeTrace, encode_trace
from cometmq.spark.traces import rows_of

BEFORE = SubBeforeTrace(
    timestamp=1_000,
    region_id=None,
    group="billing",
    request_id="r",
    message_id="m",
    retry_times=2,
    keys=None,
)
AFTER = SubAfterTrace(request_id="r", message_id="m", cost_ms=7, is_success=False, keys=None)


def test_each_record_is_a_row() -> None:
    before, after = rows_of((encode_trace(BEFORE) + encode_trace(AFTER)).encode())
    assert (before["kind"], before["at"], before["retryTimes"]) == ("SubBefore", 1_000_000, 2)
    assert (after["kind"], after["at"], after["costMs"]) == ("SubAfter", None, 7)
    assert after["isSuccess"] is False


def test_what_is_no_trace_is_told() -> None:
    for body in (b"SubBefore\x01only\x02", b"\xff"):
        (row,) = rows_of(body)
        assert row["kind"] == "undecodable"
        assert row["reason"]
    assert rows_of(None) == []
