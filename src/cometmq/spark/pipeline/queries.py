"""Which queries a pipeline becomes: one for each sink, and one for the dead letters of each source. No Spark here.

Each query reads its sources itself and remembers in a directory of its own how far it is, so that one can be behind or
fail without the others losing or repeating a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cometmq.spark.pipeline.definition import DeadLetters, Pipeline, Sink, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """``failed_of`` is the source whose undecodable rows go to the sink; None for a sink of the file."""

    name: str
    sink: Sink
    failed_of: str | None
    checkpoint: str | None
    is_first: bool


def queries_of(pipeline: Pipeline) -> list[Query]:
    sinks: list[tuple[Sink, str | None]] = [(sink, None) for sink in pipeline.sinks.values()]
    for source in pipeline.sources.values():
        letters = source.body.dead_letters if source.body else None
        if letters is not None and letters.topic is not None:
            sinks.append((_dead_letter_sink(source, letters), source.name))
    return [
        Query(
            name=f"{pipeline.name}-{sink.name}",
            sink=sink,
            failed_of=failed_of,
            checkpoint=_checkpoint(pipeline, sink),
            is_first=at == 0,
        )
        for at, (sink, failed_of) in enumerate(sinks)
    ]


def source_options(pipeline: Pipeline, source: Source, query: Query) -> dict[str, str]:
    """The options of a source when this query reads it.

    A stream of a topic tells a consumer group how far it is, so that lag shows in tools. Two queries must not tell the
    same group: the first takes the name that the file gives, others add their own.
    """
    options = dict(source.options)
    if source.format == "rocketmq" and source.is_stream:
        given = options.get("consumerGroup")
        if given is None:
            options["consumerGroup"] = query.name
        elif not query.is_first:
            options["consumerGroup"] = f"{given}-{query.sink.name}"
    return options


def guarantee(sink: Sink, *, is_stream: bool) -> str:
    """What a row can count on, in one line."""
    if not is_stream:
        return "all rows when the run ends well; a run that fails is to be repeated"
    if sink.format in ("parquet", "json", "csv", "orc"):
        return "exactly once, for readers that heed the log _spark_metadata, as Spark does"
    if sink.format == "delta":
        return "exactly once: each commit carries the query and the batch as its transaction"
    if sink.format == "iceberg":
        return "exactly once: each snapshot names the query and the batch"
    if sink.format == "rocketmq":
        return "exactly once with CometMQ brokers, at least once with others"
    return "at least once: a batch may be shown again after a failure"


def _dead_letter_sink(source: Source, letters: DeadLetters) -> Sink:
    assert letters.topic is not None
    return Sink(
        line=source.body.line if source.body else source.line,
        name=f"{source.name}_dead_letters",
        view=source.name,
        format="rocketmq",
        mode="append",
        options={**_connection(source.options), **letters.options, "topic": letters.topic},
    )


def _connection(options: Mapping[str, str]) -> dict[str, str]:
    """Those options of a source that say how the cluster is reached, which hold for the dead letters too."""
    names = {
        "nameservers",
        "connectionfile",
        "namespace",
        "accesskey",
        "secretkey",
        "securitytoken",
        "calltimeout",
        "connecttimeout",
    }
    return {
        key: value
        for key, value in options.items()
        if key.lower() in names or key.lower().startswith("tls.")
    }


def _checkpoint(pipeline: Pipeline, sink: Sink) -> str | None:
    if pipeline.checkpoint is None:
        return None
    return f"{pipeline.checkpoint.rstrip('/')}/{sink.name}"
