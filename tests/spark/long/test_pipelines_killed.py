"""Pipelines whose processes are killed at random points, ten times: no row is lost, none is there twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.spark.long.processes import command, send

from cometmq.testing import cluster

ROUNDS = 10
ROWS_PER_ROUND = 3000

COPY = """\
name: copy
checkpoint: {directory}/checkpoint
trigger: asap
sources:
  messages:
    format: rocketmq
    options: {{nameServers: "{name_servers}", topic: Orders, startingOffsets: earliest, maxRowsPerTrigger: 500}}
transforms:
  copies:
    sql: SELECT body, keys, tags FROM messages
sinks:
  {sink}
"""
SINKS = {
    "parquet": "table: {{format: parquet, options: {{path: {directory}/table}}}}",
    "delta": "table: {{format: delta, options: {{path: {directory}/table}}}}",
    "iceberg": (
        "table: {{format: iceberg, options: {{table: a.b, catalog.type: sql, "
        "catalog.uri: 'sqlite:///{directory}/catalog.db', catalog.warehouse: 'file://{directory}/warehouse'}}}}"
    ),
    "rocketmq": "topic: {{format: rocketmq, options: {{nameServers: '{name_servers}', topic: Copies}}}}",
}
READERS = {
    "parquet": "parquet",
    "delta": "cometmq-delta",
    "iceberg": "cometmq-iceberg",
    "rocketmq": "rocketmq",
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sink", list(SINKS))
def test_every_row_is_there_once(spark: Any, tmp_path: Path, sink: str) -> None:
    chance = random.Random(sink)
    with cluster() as servers:
        values = {"directory": str(tmp_path), "name_servers": servers.name_servers}
        file = tmp_path / "copy.yaml"
        file.write_text(COPY.format(sink=SINKS[sink].format(**values), **values))
        sent = 0
        for _ in range(ROUNDS):
            send(servers.name_servers, range(sent, sent + ROWS_PER_ROUND))
            sent += ROWS_PER_ROUND
            run_and_kill(file, chance)
        done = subprocess.run(
            command(str(file), "--once"), capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        found = rows(spark, sink, tmp_path, servers.name_servers)
    wrong = {body: count for body, count in found.items() if count != 1}
    assert not wrong
    assert found.keys() == {b"%d" % number for number in range(sent)}


def run_and_kill(file: Path, chance: random.Random) -> None:
    """Start it, let it write something, and kill Spark's JVM and the driver with it."""
    process = subprocess.Popen(
        command(str(file)), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            # The first batch is through: from now on any moment will do.
            if ": batch " in line:
                break
        else:
            raise AssertionError(f"it ended by itself, code {process.wait()}")
        time.sleep(chance.uniform(0.0, 1.5))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stderr.close()


def rows(spark: Any, sink: str, directory: Path, name_servers: str) -> Counter[bytes]:
    from cometmq.spark.pipeline.session import register

    register(spark)
    options = {
        "parquet": {"path": f"{directory}/table"},
        "delta": {"path": f"{directory}/table"},
        "iceberg": {
            "table": "a.b",
            "catalog.type": "sql",
            "catalog.uri": f"sqlite:///{directory}/catalog.db",
        },
        "rocketmq": {"nameServers": name_servers, "topic": "Copies"},
    }[sink]
    frame = spark.read.format(READERS[sink]).options(**options).load()
    return Counter(bytes(row.body) for row in frame.select("body").collect())
