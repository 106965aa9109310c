"""Metrics of a pipeline, from the totals of its queries."""

from __future__ import annotations

from cometmq.spark.pipeline.progress import Totals
from cometmq.spark.pipeline_metrics import pipeline_families

PROGRESS = {
    "batchId": 0,
    "numInputRows": 10,
    "processedRowsPerSecond": 5.0,
    "durationMs": {"triggerExecution": 2000},
    "sources": [
        {
            "endOffset": {"T": {"b": {"0": 10}}},
            "latestOffset": {"T": {"b": {"0": 14, "1": 1}}},
        }
    ],
}


def test_rows_batches_and_lag_are_told_by_query() -> None:
    totals = {"first": Totals("first"), "idle": Totals("idle")}
    totals["first"].add(PROGRESS)
    found = {one.page_name: dict(one.read()) for one in pipeline_families(totals.values)}
    assert found == {
        "cometmq_pipeline_rows_read_total": {("first",): 10.0, ("idle",): 0.0},
        # The sink does not tell.
        "cometmq_pipeline_rows_written_total": {},
        "cometmq_pipeline_rows_too_late_total": {("first",): 0.0, ("idle",): 0.0},
        "cometmq_pipeline_batches_total": {("first",): 1.0, ("idle",): 0.0},
        "cometmq_pipeline_batch_seconds_total": {("first",): 2.0, ("idle",): 0.0},
        "cometmq_pipeline_rows_per_second": {("first",): 5.0},
        "cometmq_pipeline_behind_messages": {("T b/0", "first"): 4.0, ("T b/1", "first"): 1.0},
    }
