"""Formats made known to a session, in a way that several streams may start at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

STREAM_VARIABLES: Final = {
    "SPARK_LOCAL_DIRS": "",
    "SPARK_AUTH_SOCKET_TIMEOUT": "",
    "SPARK_BUFFER_SIZE": "",
    "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER",
}
"""What Spark's PythonStreamingSourceRunner sets, before it starts the process that has use for it.

It puts them into the one map that all streams of a format share, and no lock protects. Two that start at the same time
can leave a map behind that counts more entries than it has: tasks of the format then fail with an
OptionalDataException. Of names that are there already only the values change, which does no harm.
"""


def register_formats(spark: SparkSession, *formats: type[DataSource]) -> None:
    # A session of Spark Connect has none: its server registers.
    context: Any = getattr(spark, "_sc", None)
    if context is None:
        for format_ in formats:
            spark.dataSource.register(format_)
        return
    environment = context.environment
    context.environment = STREAM_VARIABLES | environment
    try:
        for format_ in formats:
            spark.dataSource.register(format_)
    finally:
        context.environment = environment
