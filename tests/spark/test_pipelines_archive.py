"""The archive pipeline from the command line: topic to table, every message once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.spark.pipeline_runs import cometmq, settings

from cometmq.client.sync import Producer
from cometmq.model.messages.message import Message
from cometmq.testing import cluster


def send(name_servers: str, topic: str, numbers: range) -> None:
    with Producer("shop", name_servers=name_servers) as producer:
        producer.send_all(
            Message(topic=topic, body=b"%d" % number, tags="paid", keys=[f"order-{number}"])
            for number in numbers
        )


def test_archive(spark: Any, tmp_path: Path) -> None:
    with cluster() as servers:
        chosen = settings(
            nameServers=servers.name_servers,
            topic="Orders",
            path=tmp_path / "archive",
            checkpoint=tmp_path / "checkpoint",
        )
        send(servers.name_servers, "Orders", range(100))
        printed = cometmq("pipeline", "run", "archive", "--once", *chosen)
        assert "archive-table: 100 rows read, 100 rows written, 1 batch in" in printed
        send(servers.name_servers, "Orders", range(100, 130))
        assert "30 rows written" in cometmq("pipeline", "run", "archive", "--once", *chosen)
    rows = spark.read.parquet(str(tmp_path / "archive")).collect()
    assert sorted(int(row.body) for row in rows) == list(range(130))
    assert {row.tags for row in rows} == {"paid"}
    assert {str(row.day) for row in rows} == {str(row.storeTimestamp.date()) for row in rows}
    assert list((tmp_path / "archive").glob("day=*/*.parquet"))
