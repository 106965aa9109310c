"""Tells the name servers now and then how a pipeline is, for the dashboard. It never stops or delays the pipeline."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol

from cometmq.admin.pipeline_report import (
    ENDED,
    FAILED,
    NAMESPACE,
    RUNNING,
    PipelineReport,
)
from cometmq.admin.sync import Admin
from cometmq.base.clock import SystemClock
from cometmq.base.errors import CometError
from cometmq.client.client_config import ClientConfig
from cometmq.spark.options import ConnectionOptions, OptionReader, read_connection
from cometmq.spark.pipeline.definition import Pipeline, Sink, Source
from cometmq.spark.pipeline.progress import Totals

REPORT_SECONDS: Final = 15.0
CALL_SECONDS: Final = 3.0
ROCKETMQ: Final = "rocketmq"

_TOPIC_KEYS: Final = frozenset({"topic", "topicpattern", "path"})

Tell = Callable[[PipelineReport], None]


class Lines(Protocol):
    def line(self, text: str) -> None: ...


@contextmanager
def reporting(
    pipeline: Pipeline, totals: Mapping[str, Totals], terminal: Lines, *, tell: Tell | None = None
) -> Iterator[None]:
    """Reports inside the block, and how it ended. A pipeline that touches no topic reports nothing.

    Args:
        tell: instead of the name servers of the pipeline's first topic.
    """
    connection = connection_of(pipeline)
    if tell is None:
        if connection is None:
            yield
            return
        tell = _to_name_servers(connection)
    clock = SystemClock()
    started_ms = clock.wall_ms()
    over = threading.Event()
    is_said = threading.Event()

    def report(state: str, error: str = "") -> None:
        told = _report(pipeline, totals, state, started_ms, clock.wall_ms(), error)
        try:
            tell(told)
        except CometError as failure:
            if not is_said.is_set():
                is_said.set()
                terminal.line(f"{pipeline.name}: the dashboard will not show it: {failure}")

    def keep_reporting() -> None:
        report(RUNNING)
        while not over.wait(REPORT_SECONDS):
            report(RUNNING)

    thread = threading.Thread(target=keep_reporting, name="pipeline-report", daemon=True)
    thread.start()
    state, error = ENDED, ""
    try:
        yield
    except Exception as failure:
        state, error = FAILED, str(failure)
        raise
    finally:
        over.set()
        thread.join()
        report(state, error)


def connection_of(pipeline: Pipeline) -> ConnectionOptions | None:
    """Of the first topic that it reads or writes; None if there is none, or its options say nothing usable."""
    for options in _topic_options(pipeline):
        try:
            return read_connection(OptionReader(options))
        except CometError:
            return None
    return None


def topics_of(pipeline: Pipeline) -> list[str]:
    """Names of topics in its options, as they are written there."""
    named = {
        value
        for options in _topic_options(pipeline)
        for key, value in options.items()
        if key.lower() in _TOPIC_KEYS and value
    }
    return sorted(named)


def _topic_options(pipeline: Pipeline) -> list[Mapping[str, str]]:
    parts: list[Source | Sink] = [*pipeline.sources.values(), *pipeline.sinks.values()]
    return [part.options for part in parts if part.format == ROCKETMQ]


def _report(
    pipeline: Pipeline,
    totals: Mapping[str, Totals],
    state: str,
    started_ms: int,
    now_ms: int,
    error: str,
) -> PipelineReport:
    queries = list(totals.values())
    last = [query.last for query in queries if query.last is not None]
    behind = [sum(batch.behind.values()) for batch in last if batch.behind]
    return PipelineReport(
        name=pipeline.name,
        state=state,
        topics=topics_of(pipeline),
        lag=sum(behind) if behind else None,
        rows_read=sum(query.rows_read for query in queries),
        rows_per_second=sum(batch.rows_per_second for batch in last),
        started_ms=started_ms,
        reported_ms=now_ms,
        last_error=error,
    )


def _to_name_servers(connection: ConnectionOptions) -> Tell:
    config = ClientConfig(
        name_servers=";".join(connection.name_servers),
        credentials=connection.credentials,
        tls=connection.tls,
    )

    def tell(report: PipelineReport) -> None:
        with Admin(config=config, timeout=CALL_SECONDS) as admin:
            told = admin.kv.put(NAMESPACE, report.name, report.encode())
            if not told.done:
                told.raise_failed("reporting the pipeline")

    return tell
