"""Pipelines killed at random points, the archive that comes along among them: no row is lost, none is there twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.spark.long.processes import command, java_of, send
from tests.spark.pipeline_runs import settings

from cometmq.spark.pipeline.shipped import shipped
from cometmq.testing import cluster

ROWS_PER_ROUND = 3000
ROWS_PER_BATCH = 800
DEADLINE_SECONDS = 120.0

TO_TOPIC = """\
name: copy
parameters:
  nameServers:
  topic:
  path:
  checkpoint:
  rowsPerBatch:
checkpoint: ${checkpoint}
sources:
  messages:
    format: rocketmq
    options:
      nameServers: ${nameServers}
      topic: ${topic}
      startingOffsets: earliest
      maxRowsPerTrigger: ${rowsPerBatch}
transforms:
  copies:
    sql: SELECT body, keys, tags FROM messages
sinks:
  table:
    format: rocketmq
    options:
      nameServers: ${nameServers}
      topic: Copies
"""
ICEBERG_OPTIONS = """\
      table: a.b
      catalog.type: sql
      catalog.uri: sqlite:///${path}/catalog.db
      catalog.warehouse: file://${path}/warehouse
"""


def pipeline(target: str, directory: Path) -> str:
    """The archive as it comes along, a copy of it with another sink, or from topic to topic."""
    archive = shipped()["archive"].read_text()
    if target == "parquet":
        return "archive"
    if target == "rocketmq":
        text = TO_TOPIC
    else:
        text = archive.replace("format: parquet", f"format: {target}")
        text = text.replace("trigger: 10 seconds", "trigger: asap")
        if target == "iceberg":
            text = text.replace("      path: ${path}\n", ICEBERG_OPTIONS)
    assert text != archive
    file = directory / "copy.yaml"
    file.write_text(text)
    return str(file)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("target", "kills"), [("parquet", 10), ("rocketmq", 10), ("delta", 4), ("iceberg", 4)]
)
def test_every_row_is_there_once(spark: Any, tmp_path: Path, target: str, kills: int) -> None:
    chance = random.Random(target)
    # As it comes along it begins a batch every ten seconds, the others at once.
    pause_max = 11.0 if target == "parquet" else 1.5
    (tmp_path / "table").mkdir()
    with cluster() as servers:
        options = settings(
            nameServers=servers.name_servers,
            topic="Orders",
            path=tmp_path / "table",
            checkpoint=tmp_path / "checkpoint",
            rowsPerBatch=ROWS_PER_BATCH,
        )
        file = pipeline(target, tmp_path)
        run = command(file, *options)
        sent = half_done = 0
        for number in range(kills):
            send(servers.name_servers, range(sent, sent + ROWS_PER_ROUND))
            sent += ROWS_PER_ROUND
            with started(run) as process:
                # The pauses put the kill at any moment behind a batch, or inside one.
                if number % 2:
                    wait_for_line(process, ": batch ")
                    time.sleep(chance.uniform(0.0, pause_max))
                else:
                    wait_for_line(process, ": running, ")
                    wait_until(lambda: is_in_a_batch(tmp_path / "checkpoint"))
                    time.sleep(chance.uniform(0.0, 1.0))
                kill(process, is_all=bool(number // 2 % 2))
            half_done += is_in_a_batch(tmp_path / "checkpoint")
        assert half_done, "this shows that batches were killed half-way"
        done = subprocess.run(
            command(file, "--once", *options),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = rows(spark, target, tmp_path / "table", servers.name_servers)
    wrong = {body: count for body, count in found.items() if count != 1}
    assert not wrong
    assert found.keys() == {b"%d" % number for number in range(sent)}


@contextmanager
def started(run: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(run, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stderr is not None
    # A run that says nothing must not hold the test up.
    limit = threading.Timer(DEADLINE_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
    limit.start()
    try:
        yield process
    finally:
        limit.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stderr.close()


def kill(process: subprocess.Popen[str], *, is_all: bool) -> None:
    """Kill Spark's JVM, which the pipeline has to notice and to tell, or everything at once."""
    if is_all:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return
    os.kill(java_of(process.pid), signal.SIGKILL)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1, told
    # PySpark's own threads may have complained before.
    assert "Spark's Java process ended" in told.splitlines()[-1], told


def wait_for_line(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    told = ""
    for line in process.stderr:
        told += line
        if text in line:
            return
    raise AssertionError(f"it ended by itself, code {process.wait()}: {told}")


def wait_until(is_true: Any) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_in_a_batch(checkpoint: Path) -> bool:
    """Whether a batch has been planned, and not yet finished."""
    offsets, commits = (
        max((int(path.name) for path in (checkpoint / "table" / log).glob("[0-9]*")), default=-1)
        for log in ("offsets", "commits")
    )
    return offsets > commits


def rows(spark: Any, target: str, path: Path, name_servers: str) -> Counter[bytes]:
    from cometmq.spark.pipeline.session import register

    register(spark)
    name, options = {
        "parquet": ("parquet", {"path": str(path)}),
        "delta": ("cometmq-delta", {"path": str(path)}),
        "iceberg": (
            "cometmq-iceberg",
            {"table": "a.b", "catalog.type": "sql", "catalog.uri": f"sqlite:///{path}/catalog.db"},
        ),
        "rocketmq": ("rocketmq", {"nameServers": name_servers, "topic": "Copies"}),
    }[target]
    frame = spark.read.format(name).options(**options).load()
    return Counter(bytes(row.body) for row in frame.select("body").collect())
