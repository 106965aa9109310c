"""A pipeline as a process of its own, as it runs in production: started, interrupted, run again."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from tests.spark.long.processes import command, send
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
        # Nothing of what Spark tells by itself, but for one line of the Java machine.
        assert (
            again.stderr.replace("WARNING: Using incubator modules: jdk.incubator.vector\n", "")
            == ""
        )
