"""The tests of sources and sinks once more, on executors that are processes of their own (``local-cluster``)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name",
    [
        "source_batch",
        "source_stream",
        "source_security",
        "connection_options",
        "sink",
        "log_source",
        "tables",
    ],
)
def test_on_executors_of_their_own(name: str) -> None:
    import pyspark

    test = f"tests/spark/test_{name}.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
        cwd=ROOT,
        env={
            **os.environ,
            "COMETMQ_SPARK_TEST_MASTER": "local-cluster[2,1,1024]",
            # Executors are started by the scripts below it.
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
    )
    assert done.returncode == 0, done.stdout[-20_000:]
