"""The Spark session of a pipeline: Java found and new enough, workers on the right Python, little noise."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any

from cometmq.base.errors import CometError, UsageError
from cometmq.spark.java import choose_java, silence_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkNotStarted(CometError):
    """Spark could not be started, or its cluster not be reached."""


class SparkLost(CometError):
    """Spark's Java process ended in the middle of a run."""


class SparkMissing(UsageError):
    """The packages that pipelines need are not installed."""


def check_installed() -> None:
    """Raises SparkMissing, with what to install."""
    try:
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
        import yaml  # noqa: F401
    except ImportError as error:
        raise SparkMissing(
            f"pipelines need the package {error.name}: pip install 'cometmq[spark]'"
        ) from None


@contextmanager
def spark_session(
    name: str, *, master: str, settings: Mapping[str, str], python_files: tuple[str, ...] = ()
) -> Iterator[SparkSession]:
    """A session with our formats registered. One that was there before is used and left running.

    Raises:
        SparkMissing, JavaMissing: what is needed is not installed.
        SparkNotStarted: the master is no place where Spark could run.
        SparkLost: its Java process ended while the block ran.
    """
    check_installed()
    is_remote = master.startswith("sc://")
    if not is_remote:
        choose_java(os.environ)
        silence_java(os.environ)
    # Otherwise workers take whatever python3 the PATH has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # PySpark logs what it raises, with hundreds of lines; the message that is printed says it in one.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_no_lost_call)
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.sql import SparkSession

    was_running = SparkSession.getActiveSession() is not None
    builder = SparkSession.builder.appName(name)
    builder = builder.remote(master) if is_remote else builder.master(master)
    if not was_running:
        for key, value in {**_defaults(master), **settings}.items():
            builder = builder.config(key, value)
    spark = _started(builder, master)
    try:
        for key, value in settings.items():
            if was_running and spark.conf.isModifiable(key):
                spark.conf.set(key, value)
        if not is_remote:
            spark.sparkContext.setLogLevel("ERROR")
        for file in python_files:
            spark.addArtifacts(file, pyfile=True)
        register(spark)
        yield spark
    except (Py4JError, ConnectionError):
        code = None if is_remote else _java_exit_code()
        if code is None:
            raise
        raise SparkLost(
            f"Spark's Java process ended in the middle of the run (exit code {code}); what was finished stays, "
            "the next run goes on from there. A code of -9 is often a machine short of memory"
        ) from None
    finally:
        if not was_running and (is_remote or _java_exit_code(wait_seconds=0.0) is None):
            spark.stop()


def _is_no_lost_call(record: logging.LogRecord) -> bool:
    """A call of a Java process that is gone is logged with its trace by the library, and raised as well."""
    return record.msg != "Exception while sending command."


def _java_exit_code(wait_seconds: float = 5.0) -> int | None:
    """None while Java runs. Its connections are closed a moment before it is gone, hence the wait."""
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        return process.wait(wait_seconds)
    except subprocess.TimeoutExpired:
        return None


def _started(builder: Any, master: str) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return builder.getOrCreate()  # type: ignore[no-any-return]
    except (PySparkException, Py4JError) as error:
        said = re.search(r"Exception: (.+)", str(error))
        reason = said[1] if said else str(error).partition("\n")[0]
        raise SparkNotStarted(f"Spark did not start with master {master!r}: {reason}") from error


def register(spark: SparkSession) -> None:
    """All formats that pipelines know."""
    import cometmq.spark
    from cometmq.spark.formats import register_formats
    from cometmq.spark.tables.delta import DeltaDataSource
    from cometmq.spark.tables.iceberg import IcebergDataSource

    cometmq.spark.register(spark)
    register_formats(spark, DeltaDataSource, IcebergDataSource)


def _defaults(master: str) -> dict[str, str]:
    """What is better for a pipeline than Spark's own defaults. The file overrides each of them."""
    defaults = {
        # Days and windows begin at the same time wherever a pipeline runs.
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        # A task that hangs must not hold up the end of a run for ever.
        "spark.sql.streaming.stopTimeout": "60s",
    }
    if master.startswith("local"):
        log_settings = resources.files("cometmq.spark.pipeline") / "log4j2.properties"
        defaults |= {
            # 200, Spark's default, is made for clusters: each is a task and a state store for every micro-batch.
            "spark.sql.shuffle.partitions": "4",
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log_settings}",
        }
    return defaults
