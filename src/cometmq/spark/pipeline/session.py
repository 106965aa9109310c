"""The Spark session of a pipeline: Java found and new enough, workers on the right Python, little noise."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cometmq.base.errors import CometError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MAJOR_MIN: Final = 17
_JAVA_SECONDS_MAX: Final = 30.0
_VERSION: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')

_ADVICE: Final = (
    f"Spark needs Java {JAVA_MAJOR_MIN} or newer (on Debian: apt install openjdk-{JAVA_MAJOR_MIN}-jre-headless); "
    "if it is installed elsewhere, set JAVA_HOME to its directory"
)


class JavaMissing(CometError):
    """There is no Java that Spark could run on."""


class SparkNotStarted(CometError):
    """Spark could not be started, or its cluster not be reached."""


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


def check_java(environment: Mapping[str, str]) -> int:
    """The version of the Java that Spark will use. Raises JavaMissing when there is none, or an old one."""
    home = environment.get("JAVA_HOME")
    program = (
        str(Path(home) / "bin" / "java")
        if home
        else shutil.which("java", path=environment.get("PATH"))
    )
    if program is None:
        raise JavaMissing(f"no java on the PATH. {_ADVICE}")
    try:
        told = subprocess.run(
            [program, "-version"],
            capture_output=True,
            text=True,
            timeout=_JAVA_SECONDS_MAX,
            check=False,
        )
    except OSError as error:
        raise JavaMissing(f"{program} cannot be run: {error.strerror}. {_ADVICE}") from None
    except subprocess.TimeoutExpired:
        raise JavaMissing(
            f"{program} -version gave no answer in {_JAVA_SECONDS_MAX:g} s. {_ADVICE}"
        ) from None
    major = java_major(told.stderr + told.stdout)
    if major is None:
        raise JavaMissing(f"{program} -version said no version. {_ADVICE}")
    if major < JAVA_MAJOR_MIN:
        raise JavaMissing(f"{program} is Java {major}. {_ADVICE}")
    return major


def java_major(text: str) -> int | None:
    """The version in what ``java -version`` prints; "1.8.0" is 8."""
    match = _VERSION.search(text)
    if match is None:
        return None
    return int(match[2]) if match[1] == "1" and match[2] else int(match[1])


@contextmanager
def spark_session(
    name: str, *, master: str, settings: Mapping[str, str], python_files: tuple[str, ...] = ()
) -> Iterator[SparkSession]:
    """A session with our formats registered. One that was there before is used and left running.

    Raises:
        SparkMissing, JavaMissing: what is needed is not installed.
        SparkNotStarted: the master is no place where Spark could run.
    """
    check_installed()
    is_remote = master.startswith("sc://")
    if not is_remote:
        check_java(os.environ)
    # Otherwise workers take whatever python3 the PATH has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # PySpark logs what it raises, with hundreds of lines; the message that is printed says it in one.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
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
    finally:
        if not was_running:
            spark.stop()


def _started(builder: Any, master: str) -> SparkSession:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
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
    from cometmq.spark.tables.delta import DeltaDataSource
    from cometmq.spark.tables.iceberg import IcebergDataSource

    cometmq.spark.register(spark)
    spark.dataSource.register(DeltaDataSource)
    spark.dataSource.register(IcebergDataSource)


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
