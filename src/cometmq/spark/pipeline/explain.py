"""What a pipeline will do, told before it does anything. No Spark, unless its plans are asked for."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cometmq.spark.pipeline.definition import Pipeline, Sink, Source, Transform, shown
from cometmq.spark.pipeline.queries import Query, guarantee, queries_of, source_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def explain(pipeline: Pipeline) -> str:
    """Sources, transforms, sinks and queries; options that hold secrets are hidden."""
    kind = f"stream, {pipeline.trigger}" if pipeline.is_stream else "batch"
    lines = [f"{pipeline.name} ({kind}) on {pipeline.master}"]
    if pipeline.description:
        lines.append(f"  {pipeline.description}")
    queries = queries_of(pipeline)
    lines += ["", "sources"]
    for source in pipeline.sources.values():
        lines += _source(pipeline, source, queries)
    if pipeline.transforms:
        lines += ["", "transforms"]
        for transform in pipeline.transforms.values():
            lines += _transform(transform)
    lines += ["", "queries"]
    for query in queries:
        lines += _query(pipeline, query)
    return "\n".join(lines)


def plan_of(frame: DataFrame) -> str:
    """Spark's own plan."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain(mode="formatted")
    return text.getvalue().rstrip()


def _source(pipeline: Pipeline, source: Source, queries: list[Query]) -> list[str]:
    kind = "stream" if source.is_stream else "table"
    lines = [f"  {source.name}: {source.format}, {kind}"]
    options = dict(source.options)
    if source.is_stream and source.format == "rocketmq":
        groups = [source_options(pipeline, source, query)["consumerGroup"] for query in queries]
        options["consumerGroup"] = ", ".join(groups)
    lines += _options(options)
    if source.schema:
        lines.append(f"    schema       {source.schema}")
    body = source.body
    if body is not None:
        where = " ".join(part for part in (body.schema, body.file, body.message) if part)
        lines.append(f"    body         {body.format} {where}".rstrip())
        if body.dead_letters is not None:
            topic = body.dead_letters.topic
            lines.append(
                f"    undecodable  {'stops the run' if topic is None else f'to topic {topic}'}"
            )
    if source.watermark is not None:
        lines.append(f"    watermark    {source.watermark.column}, {source.watermark.delay} late")
    return lines


def _transform(transform: Transform) -> list[str]:
    if transform.sql is not None:
        sql = [f"    {line}".rstrip() for line in transform.sql.strip().splitlines()]
        return [f"  {transform.name}: SQL", *sql]
    arguments = "".join(f", {key}={value}" for key, value in transform.arguments.items())
    call = f"{transform.function}({', '.join(transform.inputs)}{arguments})"
    return [f"  {transform.name}: Python", f"    {call}"]


def _query(pipeline: Pipeline, query: Query) -> list[str]:
    sink: Sink = query.sink
    what = f"undecodable rows of {sink.view}" if query.failed_of else sink.view
    lines = [f"  {query.name}: {what} -> {sink.format}, {sink.mode}", *_options(sink.options)]
    if sink.partition_by:
        lines.append(f"    partitions   {', '.join(sink.partition_by)}")
    if pipeline.is_stream and query.checkpoint:
        lines.append(f"    checkpoint   {query.checkpoint}")
    lines.append(f"    promise      {guarantee(sink, is_stream=pipeline.is_stream)}")
    return lines


def _options(options: Mapping[str, str]) -> list[str]:
    return [f"    {key:12} {value}" for key, value in shown(options).items()]
