"""Running a pipeline: all its queries at once, until they end, one fails, or somebody interrupts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cometmq.base.errors import CometError
from cometmq.monitor.page_thread import PageThread
from cometmq.spark.pipeline.definition import Pipeline, Trigger
from cometmq.spark.pipeline.progress import Terminal, Totals
from cometmq.spark.pipeline.queries import Query, queries_of
from cometmq.spark.pipeline.session import spark_session
from cometmq.spark.pipeline.sinks import ROWS_WRITTEN, frame_for, start, write
from cometmq.spark.pipeline.stop import Stop, stop_on_signals
from cometmq.spark.pipeline.transforms import build_views, mistake, spark_text
from cometmq.spark.pipeline_metrics import pipeline_families
from cometmq.spark.pipeline_report import reporting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_SECONDS: Final = 0.3


class QueryFailed(CometError):
    """A query of the pipeline ended with an error; what it had finished stays, and the next run goes on from there."""


def run(
    pipeline: Pipeline,
    *,
    is_once: bool,
    terminal: Terminal,
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
) -> list[str]:
    """Run until everything that is there is through (``is_once``, or a batch), or until interrupted.

    Args:
        metrics_port: serve metrics there; 0 takes any free port.

    Returns:
        A line for each query: what it read and wrote.

    Raises:
        PipelineFileError: something in the file does not fit the data.
        QueryFailed: a query failed; the others were stopped.
        RemotingError: the port for metrics cannot be had.
    """
    if is_once:
        pipeline = replace(pipeline, trigger=Trigger(interval=None))
    session = spark_session(
        pipeline.name,
        master=pipeline.master,
        settings=pipeline.settings,
        python_files=pipeline.python_files,
    )
    totals: dict[str, Totals] = {}
    with (
        _metrics_page(pipeline, totals, metrics_host, metrics_port, terminal),
        reporting(pipeline, totals, terminal),
        session as spark,
        stop_on_signals() as stop,
    ):
        frames = [
            (query, frame_for(pipeline, query, build_views(spark, pipeline, query)))
            for query in queries_of(pipeline)
        ]
        with stop.at_once():
            lines = [
                _write_batch(pipeline, query, frame)
                for query, frame in frames
                if not frame.isStreaming
            ]
        streams = [(query, frame) for query, frame in frames if frame.isStreaming]
        totals.update({query.name: Totals(query.name) for query, _ in streams})
        with _started(pipeline, streams, terminal) as running:
            _follow(running, totals, terminal, stop)
        return lines + [each.summary() for each in totals.values()]


@contextmanager
def _metrics_page(
    pipeline: Pipeline,
    totals: dict[str, Totals],
    host: str,
    port: int | None,
    terminal: Terminal,
) -> Iterator[None]:
    if port is None:
        yield
        return
    common = {"pipeline": pipeline.name, "node_type": "pipeline"}
    families = pipeline_families(totals.values)
    with PageThread(families, host=host, port=port, common=common) as page:
        terminal.line(f"{pipeline.name}: metrics at http://{page.address}/metrics")
        yield


def _write_batch(pipeline: Pipeline, query: Query, frame: DataFrame) -> str:
    from pyspark.errors import PySparkException
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    observation = Observation()
    counted = frame.observe(observation, F.count(F.lit(1)).alias(ROWS_WRITTEN))
    started = time.monotonic()
    try:
        write(counted, pipeline, query)
    except PySparkException as error:
        raise QueryFailed(f"{query.name}: {spark_text(error)}") from error
    seconds = time.monotonic() - started
    if query.sink.format == "console":
        return f"{query.name}: shown in {seconds:.1f} s"
    count = observation.get[ROWS_WRITTEN]
    return f"{query.name}: {count:,} {'row' if count == 1 else 'rows'} written in {seconds:.1f} s"


@contextmanager
def _started(
    pipeline: Pipeline, streams: list[tuple[Query, DataFrame]], terminal: Terminal
) -> Iterator[list[StreamingQuery]]:
    """All queries started; on the way out those that still run are stopped."""
    from pyspark.errors import PySparkException

    running: list[StreamingQuery] = []
    try:
        for query, frame in streams:
            try:
                running.append(start(frame, pipeline, query))
            except PySparkException as error:
                text = f"sink {query.sink.name}: {spark_text(error)}"
                raise mistake(pipeline, query.sink.line, text) from None
        if streams:
            terminal.line(f"{pipeline.name}: running, {pipeline.trigger}; Ctrl-C stops it")
        yield running
    finally:
        for each in running:
            if each.isActive:
                try:
                    each.stop()
                except PySparkException as error:
                    terminal.line(f"{each.name}: did not stop in time: {spark_text(error)}")


def _follow(
    running: list[StreamingQuery],
    totals: dict[str, Totals],
    terminal: Terminal,
    stop: Stop,
) -> None:
    """Until all have ended, or somebody wants a stop. Raises QueryFailed when one ends with an error."""
    try:
        while any(each.isActive for each in running):
            _take_in(running, totals, terminal)
            failed = next(
                (each for each in running if not each.isActive and each.exception()), None
            )
            if failed is not None:
                break
            if stop.wait(POLL_SECONDS):
                terminal.line("stopping; what is under way is done again by the next run")
                break
    finally:
        _take_in(running, totals, terminal)
    for each in running:
        error = None if each.isActive else each.exception()
        if error is not None:
            raise QueryFailed(f"{each.name}: {spark_text(error)}") from error


def _take_in(running: list[StreamingQuery], totals: dict[str, Totals], terminal: Terminal) -> None:
    for query in running:
        total = totals[str(query.name)]
        for progress in _new_reports(query, total):
            batch = total.add(progress)
            if batch is not None:
                terminal.batch(total.name, batch)
    terminal.redraw(totals)


def _new_reports(query: StreamingQuery, total: Totals) -> list[dict[str, Any]]:
    """Reports since the last look; the last one may come again."""
    last = query.lastProgress
    if last is None:
        return []
    report = _as_dict(last)
    # All of the last hundred are asked for only when one may have been missed: that takes a while.
    if report["batchId"] <= total.last_batch_id + 1:
        return [report]
    return [_as_dict(each) for each in query.recentProgress]


def _as_dict(progress: Any) -> dict[str, Any]:
    # Both kinds of session give objects that write themselves as JSON.
    return json.loads(progress.json)  # type: ignore[no-any-return]


def analysed(spark: SparkSession, pipeline: Pipeline) -> dict[str, DataFrame]:
    """The frame of each query, by its name, built but not run."""
    return {
        query.name: frame_for(pipeline, query, build_views(spark, pipeline, query))
        for query in queries_of(pipeline)
    }
