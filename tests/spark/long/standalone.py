"""A Spark standalone cluster on this machine: a master and one worker, each a process, as Spark ships them."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER = re.compile(r"(Successfully registered with master)")
_SECONDS_MAX = 60.0


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[str]:
    """The URL of its master. The worker has two cores and one executor's memory."""
    directory.mkdir()
    at = ["--host", "127.0.0.1", "--webui-port", "0"]
    with ExitStack() as running:
        master = [*at, "--port", "0"]
        url = running.enter_context(_daemon("master.Master", master, directory, _MASTER))
        worker = [*at, "--cores", "2", "--memory", "1g", "--work-dir", str(directory / "work"), url]
        running.enter_context(_daemon("worker.Worker", worker, directory, _WORKER))
        yield url


@contextmanager
def _daemon(
    name: str, arguments: list[str], directory: Path, sign: re.Pattern[str]
) -> Iterator[str]:
    """One that runs, and what ``sign`` found in its log."""
    import pyspark

    home = Path(pyspark.__file__).parent
    log = directory / f"{name}.log"
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # A server that nobody asks, on a port that may be taken.
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }
    with (
        log.open("w") as file,
        subprocess.Popen(
            [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *arguments],
            stdout=file,
            stderr=file,
            env=environment,
            cwd=directory,
        ) as process,
    ):
        try:
            yield _wait_for(sign, log, process)
        finally:
            # Executors below a worker end with it when it is asked, not when it is killed.
            process.terminate()


def _wait_for(sign: re.Pattern[str], log: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + _SECONDS_MAX
    while (found := sign.search(log.read_text())) is None:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return found[1]
