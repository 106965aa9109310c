"""A pipeline says how it is, and how it ended; a report that fails harms nothing."""

from __future__ import annotations

import threading

import pytest

from cometmq.admin.pipeline_report import PipelineReport
from cometmq.base.errors import CometError
from cometmq.spark.pipeline.definition import Pipeline, Sink, Source, Trigger
from cometmq.spark.pipeline.progress import Totals
from cometmq.spark.pipeline_report import connection_of, reporting, topics_of

PIPELINE = Pipeline(
    file="hourly.yaml",
    name="hourly",
    description="",
    master="local[1]",
    settings={},
    python_files=(),
    checkpoint=None,
    trigger=Trigger(interval="1 second"),
    sources={
        "orders": Source(
            line=1,
            name="orders",
            format="rocketmq",
            is_stream=True,
            options={"nameServers": "127.0.0.1:9876", "topic": "Orders"},
        )
    },
    transforms={},
    sinks={
        "table": Sink(
            line=2, name="table", view="orders", format="parquet", mode="append", options={}
        )
    },
)


class Terminal:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


def totals() -> dict[str, Totals]:
    total = Totals("table")
    offsets = {"Orders": {"a": {"0": 5}}}
    ends = {"Orders": {"a": {"0": 12}}}
    total.add(
        {
            "batchId": 0,
            "numInputRows": 5,
            "processedRowsPerSecond": 2.5,
            "sources": [{"endOffset": offsets, "latestOffset": ends}],
        }
    )
    return {"table": total}


def test_it_reports_at_the_start_and_at_the_end() -> None:
    told: list[PipelineReport] = []
    first = threading.Event()

    def tell(report: PipelineReport) -> None:
        told.append(report)
        first.set()

    with reporting(PIPELINE, totals(), Terminal(), tell=tell):
        assert first.wait(30)
    assert [report.state for report in told] == ["running", "ended"]
    assert (told[0].lag, told[0].rows_read, told[0].topics) == (7, 5, ["Orders"])


def test_a_failure_is_reported_and_goes_on() -> None:
    told: list[PipelineReport] = []
    with (
        pytest.raises(CometError, match="no such column"),
        reporting(PIPELINE, {}, Terminal(), tell=told.append),
    ):
        raise CometError("no such column")
    assert (told[-1].state, told[-1].last_error) == ("failed", "no such column")


def test_a_report_that_fails_is_said_once() -> None:
    def tell(report: PipelineReport) -> None:
        raise CometError("not allowed")

    terminal = Terminal()
    with reporting(PIPELINE, {}, terminal, tell=tell):
        pass
    assert terminal.lines == ["hourly: the dashboard will not show it: not allowed"]


def test_where_it_reports() -> None:
    connection = connection_of(PIPELINE)
    assert connection is not None
    assert connection.name_servers == ("127.0.0.1:9876",)
    assert topics_of(PIPELINE) == ["Orders"]
