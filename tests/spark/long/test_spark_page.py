"""The page on Spark: its programs run, and print what it says."""

from __future__ import annotations

import contextlib
import io
import re
import time
from pathlib import Path
from typing import Any

import pytest

from cometmq.client.sync import Producer
from cometmq.model.message import Message
from cometmq.spark.log_files import StoreDirectory
from cometmq.testing import cluster

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "spark.md"
ORDERS = 100
WRITTEN_SECONDS_MAX = 60.0
BLOCK = re.compile(r"^```(py|output)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_programs_print_what_the_page_says(spark: Any, tmp_path: Path) -> None:
    # Spark knows another working directory than we do.
    places = {'"orders"': f'"{tmp_path}/orders"', '"orders-checkpoint"': f'"{tmp_path}/checkpoint"'}
    places['"orders-delta"'] = f'"{tmp_path}/delta"'
    with cluster(data_directory=str(tmp_path / "data")) as servers:
        places["127.0.0.1:9876"] = servers.name_servers
        with Producer("shop", name_servers=servers.name_servers) as producer:
            producer.send_all(
                Message(
                    topic="Orders",
                    body=b'{"order": %d, "amount": %d}' % (number, number),
                    tags="paid" if number % 2 else "open",
                )
                for number in range(ORDERS)
            )
        names: dict[str, Any] = {"store_directory": str(tmp_path / "data" / "store")}
        wait_until_written(names["store_directory"])
        printed = ""
        for kind, text in BLOCK.findall(PAGE.read_text()):
            if kind == "output":
                assert text.strip() == printed.strip()
                continue
            for old, new in places.items():
                text = text.replace(old, new)
            with contextlib.redirect_stdout(io.StringIO()) as stdout:
                exec(compile(text, PAGE.name, "exec"), names)
            printed = stdout.getvalue()


def wait_until_written(store_directory: str) -> None:
    """A running broker keeps the latest entries of its queues in memory for some seconds, the page says."""
    deadline = time.monotonic() + WRITTEN_SECONDS_MAX
    while _written(store_directory) < ORDERS:
        assert time.monotonic() < deadline, "the queues are not in their files yet"
        time.sleep(0.2)


def _written(store_directory: str) -> int:
    with contextlib.closing(StoreDirectory(store_directory)) as store:
        queues = [store.queue("Orders", queue_id) for queue_id in store.queue_ids("Orders")]
        return sum(queue.bounds(store.log).end for queue in queues)
