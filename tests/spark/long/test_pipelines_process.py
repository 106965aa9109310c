"""A pipeline as a process of its own, as it runs in production: started, interrupted, run again."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.long.processes import command, send
from tests.spark.long.standalone import standalone_cluster
from tests.spark.pipeline_runs import settings

from cometmq.testing import cluster


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_interrupted_run_ends_well_and_the_next_goes_on(tmp_path: Path) -> None:
    with cluster() as servers:
        options = settings(
            nameServers=servers.name_servers,
            topic="Orders",
            path=tmp_path / "archive",
            checkpoint=tmp_path / "checkpoint",
        )
        send(servers.name_servers, range(100))
        first = subprocess.Popen(
            command("archive", *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert first.stderr is not None
        told = ""
        for line in first.stderr:
            told += line
            if ": batch 0" in line:
                break
        first.send_signal(signal.SIGINT)
        printed, rest = first.communicate(timeout=120)
        assert first.returncode == 0, told + rest
        assert "archive-table: 100 rows read, 100 rows written, 1 batch in" in printed
        assert "stopping" in rest
        assert "Traceback" not in told + rest

        send(servers.name_servers, range(100, 150))
        again = subprocess.run(
            command("archive", "--once", "-q", *options),
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert again.returncode == 0, again.stderr
        assert "archive-table: 50 rows read, 50 rows written" in again.stdout
        # Nothing of what Spark and Java tell by themselves.
        assert again.stderr == ""


EXECUTORS = """\
name: executors
checkpoint: {directory}/checkpoint
trigger: once
sources:
  messages:
    format: rocketmq
    options: {{nameServers: "{name_servers}", topic: Orders, startingOffsets: earliest}}
    body: {{format: text, deadLetters: Orders-undecodable}}
sinks:
  table: {{format: delta, options: {{path: {directory}/table}}}}
  topic: {{format: rocketmq, options: {{nameServers: "{name_servers}", topic: Copies}}}}
"""


@pytest.fixture(params=["local-cluster[2,1,1024]", "standalone"])
def master(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param != "standalone":
        yield request.param
        return
    with standalone_cluster(tmp_path / "spark") as url:
        yield url


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_executors_in_processes_of_their_own(tmp_path: Path, master: str) -> None:
    from deltalake import DeltaTable

    with cluster() as servers:
        file = tmp_path / "executors.yaml"
        file.write_text(EXECUTORS.format(directory=tmp_path, name_servers=servers.name_servers))
        send(servers.name_servers, range(500))
        done = subprocess.run(
            command(str(file), master=master),
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "executors-table: 500 rows read, 500 rows written" in done.stdout
        assert "executors-topic: 500 rows read, 500 rows written" in done.stdout
        assert "executors-messages_dead_letters: 500 rows read, 0 rows written" in done.stdout
    bodies = DeltaTable(str(tmp_path / "table")).to_pyarrow_table()["body"].to_pylist()
    assert sorted(map(int, bodies)) == list(range(500))
