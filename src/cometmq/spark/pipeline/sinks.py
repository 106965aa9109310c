"""Frames into sinks: as streaming queries that were started, or as batches that were written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cometmq.base.errors import ConfigError
from cometmq.spark.bodies.body_formats import REASON
from cometmq.spark.pipeline.definition import Pipeline, Sink
from cometmq.spark.pipeline.paths import located, located_options
from cometmq.spark.pipeline.queries import Query
from cometmq.spark.pipeline.transforms import FORMATS, Views, mistake
from cometmq.spark.sink.sink_errors import BadRow
from cometmq.spark.sink.sink_options import read_sink_options
from cometmq.spark.sink.sink_rows import RowReader
from cometmq.spark.tables.files import arrow_schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

ROWS_WRITTEN: Final = "rows_written"

MESSAGE_COLUMNS: Final = (
    "topic",
    "keys",
    "tags",
    "properties",
    "delayLevel",
    "deliverTime",
    "shardingKey",
)
"""Columns that the sink of a topic takes beside the body; with ``body: json`` all others go into the body."""

DEAD_LETTER_REASON: Final = "DEAD_LETTER_REASON"
ORIGIN_PREFIX: Final = "ORIGIN_"

_CONSOLE_ROWS: Final = 20


def frame_for(pipeline: Pipeline, query: Query, views: Views) -> DataFrame:
    """What goes into the sink of a query, with its rows counted on the way.

    Raises:
        PipelineFileError: the frame lacks what the sink needs.
    """
    from pyspark.sql import functions as F

    sink = query.sink
    frame = views.frames[sink.view]
    if query.failed_of is not None:
        frame = dead_letter_rows(views.failed[query.failed_of])
    missing = [name for name in sink.partition_by if name not in frame.columns]
    if missing:
        raise mistake(
            pipeline,
            sink.line,
            f"sink {sink.name}: partitionBy names {', '.join(missing)}, which is no column; "
            f"there are {', '.join(frame.columns)}",
        )
    if sink.format == "rocketmq":
        try:
            frame = topic_rows(frame, sink)
            # Otherwise found only when the first batch is written.
            RowReader(arrow_schema_of(frame.schema), read_sink_options(sink.options))
        except (ConfigError, BadRow) as error:
            raise mistake(pipeline, sink.line, f"sink {sink.name}: {error}") from None
    return frame.observe(ROWS_WRITTEN, F.count(F.lit(1)).alias(ROWS_WRITTEN))


def topic_rows(frame: DataFrame, sink: Sink) -> DataFrame:
    """The columns that the sink of a topic takes. Raises ConfigError when there is no body."""
    from pyspark.sql import functions as F

    if not sink.is_body_json:
        if "body" not in frame.columns and "bodyColumn" not in sink.options:
            raise ConfigError(
                f"the rows have no column body, only {', '.join(frame.columns)}; "
                "select one, or set body: json to make it of all columns"
            )
        return frame
    taken = [name for name in MESSAGE_COLUMNS if name in frame.columns]
    fields = [name for name in frame.columns if name not in taken]
    if not fields:
        raise ConfigError(
            "body: json makes the body of columns, but only those of messages are there"
        )
    # A column that an option names, such as shardingColumn, is part of the body and stays beside it.
    named = [
        value
        for key, value in sink.options.items()
        if key.endswith("Column") and value in fields and value not in taken
    ]
    return frame.select(F.to_json(F.struct(*fields)).alias("body"), *taken, *named)


def dead_letter_rows(failed: DataFrame) -> DataFrame:
    """Rows that could not be decoded as messages: the body as it came, the reason and the origin as properties."""
    from pyspark.sql import functions as F

    origin = [
        item
        for name in ("topic", "brokerName", "queueId", "queueOffset", "msgId")
        if name in failed.columns
        for item in (F.lit(ORIGIN_PREFIX + name), F.col(name).cast("string"))
    ]
    told = F.create_map(F.lit(DEAD_LETTER_REASON), F.col(REASON), *origin)
    told = F.map_filter(told, lambda _, value: value.isNotNull() & (value != ""))
    if "properties" in failed.columns:
        # Names that we set ourselves are set anew; those of the system are left out by the sink.
        theirs = F.map_filter(
            F.coalesce(F.col("properties"), F.create_map().cast("map<string,string>")),
            lambda name, _: ~name.startswith(ORIGIN_PREFIX) & (name != DEAD_LETTER_REASON),
        )
        told = F.map_concat(theirs, told)
    # A message needs a body, and a row of another source may have had none.
    is_empty = F.col("body").isNull() | (F.octet_length("body") == 0)
    body = F.when(is_empty, F.encode(F.col(REASON), "UTF-8")).otherwise(F.col("body"))
    kept = [name for name in ("keys", "tags") if name in failed.columns]
    return failed.select(body.alias("body"), *kept, told.alias("properties"))


def start(frame: DataFrame, pipeline: Pipeline, query: Query) -> StreamingQuery:
    """Start a streaming query."""
    sink, trigger = query.sink, pipeline.trigger
    writer: Any = frame.writeStream.queryName(query.name).outputMode(sink.mode)
    if trigger.interval is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=trigger.interval)
    if query.checkpoint is not None:
        writer = writer.option("checkpointLocation", located(pipeline, query.checkpoint))
    if sink.format == "console":
        return writer.foreachBatch(_show_batch(sink)).start()  # type: ignore[no-any-return]
    return _configured(writer, pipeline, sink).start()  # type: ignore[no-any-return]


def write(frame: DataFrame, pipeline: Pipeline, query: Query) -> None:
    """Write a batch; returns when it is written."""
    sink = query.sink
    if sink.format == "console":
        if len(pipeline.sinks) > 1:
            print(f"{sink.name}:", flush=True)
        _show(frame, sink)
        return
    _configured(frame.write, pipeline, sink).mode(sink.mode).save()


def _configured(writer: Any, pipeline: Pipeline, sink: Sink) -> Any:
    options = located_options(pipeline, sink.format, sink.options)
    writer = writer.format(FORMATS.get(sink.format, sink.format)).options(**options)
    if not sink.partition_by:
        return writer
    if sink.format in FORMATS:
        return writer.option("partitionBy", ",".join(sink.partition_by))
    return writer.partitionBy(*sink.partition_by)


def _show_batch(sink: Sink) -> Any:
    def show(frame: DataFrame, batch_id: int) -> None:
        frame = frame.cache()
        try:
            if not frame.isEmpty():
                print(f"{sink.name}, batch {batch_id}:", flush=True)
                _show(frame, sink)
        finally:
            frame.unpersist()

    return show


def _show(frame: DataFrame, sink: Sink) -> None:
    count = int(sink.options.get("numRows", _CONSOLE_ROWS))
    is_cut = sink.options.get("truncate", "false") == "true"
    is_vertical = sink.options.get("vertical", "false") == "true"
    frame.show(count, truncate=is_cut, vertical=is_vertical)
