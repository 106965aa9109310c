"""Sources and transforms as views that SQL and Python functions see. Mistakes carry the line of the file."""

from __future__ import annotations

import importlib
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cometmq.base.errors import ConfigError
from cometmq.spark.bodies.body_formats import body_format, decode, first_line
from cometmq.spark.pipeline.definition import Pipeline, Source, Transform
from cometmq.spark.pipeline.document import Mistake, PipelineFileError
from cometmq.spark.pipeline.paths import located_options
from cometmq.spark.pipeline.queries import Query, source_options
from cometmq.spark.tables import delta, iceberg

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS: Final = {"delta": delta.FORMAT, "iceberg": iceberg.FORMAT}
"""Names in a file, and the data sources behind them where they differ."""

_SQL_PLACE: Final = re.compile(r"line (\d+),? pos \d+")
_PYTHON_ERROR: Final = re.compile(
    # A name at the beginning of a line, and all up to an empty line, or to what Spark adds.
    r"^[A-Za-z_][\w.]*: (.+(?:\n(?!\s*at |\s*$|\s*SQLSTATE|===|JVM stacktrace).*)*)",
    re.MULTILINE,
)


@dataclass(slots=True)
class Views:
    """``frames`` by name of source and transform; ``failed`` by name of source."""

    frames: dict[str, DataFrame] = field(default_factory=dict)
    failed: dict[str, DataFrame] = field(default_factory=dict)


def build_views(spark: SparkSession, pipeline: Pipeline, query: Query) -> Views:
    """Everything up to the sinks, as this query reads it. Nothing runs yet.

    Raises:
        PipelineFileError: what cannot be built, with its line.
    """
    views = Views()
    for source in pipeline.sources.values():
        _add_source(spark, pipeline, source, query, views)
        # A view that is made anew for the next query leaves what was built on it as it is.
        views.frames[source.name].createOrReplaceTempView(source.name)
    for transform in pipeline.transforms.values():
        frame = _transformed(spark, pipeline, transform, views)
        views.frames[transform.name] = frame
        frame.createOrReplaceTempView(transform.name)
    return views


def mistake(pipeline: Pipeline, line: int, text: str) -> PipelineFileError:
    return PipelineFileError(pipeline.file, [Mistake(line, text)])


def spark_text(error: Exception) -> str:
    """What Spark, or Python code that it ran, complains about, without traces."""
    # Python code that raises inside Spark is wrapped, with its trace; what it said stands behind the last one.
    _, traced, rest = str(error).rpartition("Traceback (most recent call last)")
    said = _PYTHON_ERROR.search(rest) if traced else None
    if said is not None:
        return said[1].strip()
    text = re.sub(r" SQLSTATE: \w+.*$", "", first_line(error))
    return text.removeprefix("[USER_RAISED_EXCEPTION] ")


def _add_source(
    spark: SparkSession, pipeline: Pipeline, source: Source, query: Query, views: Views
) -> None:
    from pyspark.errors import PySparkException

    reader: Any = spark.readStream if source.is_stream else spark.read
    reader = reader.format(FORMATS.get(source.format, source.format))
    options = source_options(pipeline, source, query)
    reader = reader.options(**located_options(pipeline, source.format, options))
    try:
        if source.schema:
            reader = reader.schema(source.schema)
        frame = reader.load()
        if source.body is not None:
            split = decode(frame, _format_of(source), as_column=source.body.as_column)
            frame = split.good
            letters = source.body.dead_letters
            if split.failed is not None and letters is not None:
                if letters.topic is None:
                    frame = _stopping(split.good, split.failed)
                else:
                    views.failed[source.name] = split.failed
    except ConfigError as error:
        line = source.body.line if source.body else source.line
        raise mistake(pipeline, line, f"source {source.name}: {error}") from None
    except PySparkException as error:
        raise mistake(pipeline, source.line, f"source {source.name}: {spark_text(error)}") from None
    views.frames[source.name] = _watermarked(pipeline, source, frame)


def _format_of(source: Source) -> Any:
    body = source.body
    assert body is not None
    return body_format(body.format, schema=body.schema, file=body.file, message=body.message)


def _stopping(good: DataFrame, failed: DataFrame) -> DataFrame:
    """The good rows; the first one that failed ends the query, its reason in the error."""
    from pyspark.sql import functions as F

    text = F.concat(F.lit("a body cannot be decoded: "), F.col("reason"))
    stopped = failed.select(F.raise_error(text).cast("string").alias("__stop"))
    nothing = [F.lit(None).cast(each.dataType).alias(each.name) for each in good.schema.fields]
    # The filter reads the column, so that the optimiser cannot drop it unevaluated.
    return good.unionByName(stopped.filter(F.col("__stop").isNotNull()).select(*nothing))


def _watermarked(pipeline: Pipeline, source: Source, frame: DataFrame) -> DataFrame:
    if source.watermark is None:
        return frame
    column = source.watermark.column
    kinds = dict(frame.dtypes)
    if kinds.get(column) not in ("timestamp", "timestamp_ntz"):
        found = f"it is a {kinds[column]}" if column in kinds else f"there are {', '.join(kinds)}"
        raise mistake(
            pipeline,
            source.watermark.line,
            f"watermark of source {source.name}: expected a timestamp column {column!r}, {found}",
        )
    return frame.withWatermark(column, source.watermark.delay)


def _transformed(
    spark: SparkSession, pipeline: Pipeline, transform: Transform, views: Views
) -> DataFrame:
    from pyspark.errors import PySparkException

    what = f"transform {transform.name}"
    if transform.sql is not None:
        try:
            return spark.sql(transform.sql)
        except PySparkException as error:
            place = _SQL_PLACE.search(str(error))
            line = transform.sql_line + (int(place[1]) - 1 if place else 0)
            raise mistake(pipeline, line, f"{what}: {spark_text(error)}") from None
    function = load_function(pipeline, transform)
    try:
        frame = function(*(views.frames[name] for name in transform.inputs), **transform.arguments)
    except TypeError as error:
        raise mistake(
            pipeline,
            transform.line,
            f"{what}: {transform.function} was called with {len(transform.inputs)} frames and the arguments "
            f"{', '.join(transform.arguments) or 'none'}: {error}",
        ) from error
    except (PySparkException, ConfigError) as error:
        raise mistake(pipeline, transform.line, f"{what}: {spark_text(error)}") from None
    if not hasattr(frame, "createOrReplaceTempView"):
        raise mistake(
            pipeline,
            transform.line,
            f"{what}: expected a DataFrame from {transform.function}, got {type(frame).__name__}",
        )
    return frame  # type: ignore[no-any-return]


def load_function(pipeline: Pipeline, transform: Transform) -> Any:
    """The function of a module path, looked for beside the pipeline file too.

    Raises:
        PipelineFileError: there is no such module or function.
    """
    assert transform.function is not None
    module_name, _, name = transform.function.partition(":")
    directory = str(Path(pipeline.file).absolute().parent)
    if directory not in sys.path:
        sys.path.insert(0, directory)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise mistake(
            pipeline,
            transform.line,
            f"transform {transform.name}: cannot import {module_name}: {error}; "
            f"install it, or put it beside the file",
        ) from None
    function = getattr(module, name, None)
    if not callable(function):
        raise mistake(
            pipeline,
            transform.line,
            f"transform {transform.name}: {module_name} has no function {name}",
        )
    return function
