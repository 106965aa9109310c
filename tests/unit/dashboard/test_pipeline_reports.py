"""How pipelines report themselves."""

from __future__ import annotations

import pytest

from cometmq.admin.pipeline_report import PipelineReport, read_reports


def report(name: str, error: str = "") -> PipelineReport:
    return PipelineReport(
        name=name,
        state="running",
        topics=["Orders"],
        lag=7,
        rows_read=10,
        rows_per_second=2.5,
        started_ms=1,
        reported_ms=2,
        last_error=error,
    )


def test_reports_are_read_back_and_bounded() -> None:
    [read] = read_reports([report("hourly", "x" * 10_000).encode()])
    assert (read.name, read.lag, len(read.last_error)) == ("hourly", 7, 500)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"name": 1}', "\ud800".encode("utf-8", "replace").decode()]
)
def test_what_is_no_report_is_left_out(text: str) -> None:
    assert [one.name for one in read_reports([text, report("a").encode()])] == ["a"]
