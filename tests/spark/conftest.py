"""One Spark session for all tests of this directory; they run in one worker, one after the other.

It is ``local[2]``, unless ``COMETMQ_SPARK_TEST_MASTER`` names another.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

# Workers take whatever `python3` the PATH has unless they are told.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def _java_fault() -> str | None:
    """Why Spark cannot run here."""
    from cometmq.spark.java import JavaMissing, choose_java

    try:
        choose_java(os.environ)
    except JavaMissing as missing:
        return str(missing)
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    fault = _java_fault()
    for item in items:
        if here in item.path.parents and fault is not None:
            item.add_marker(pytest.mark.skip(reason=fault))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    scratch = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master(os.environ.get("COMETMQ_SPARK_TEST_MASTER", "local[2]"))
        # As ``local`` has it: a task that fails is not tried again, and its Python finds what the test's own finds.
        .config("spark.task.maxFailures", "1")
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path))
        .appName("cometmq tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
