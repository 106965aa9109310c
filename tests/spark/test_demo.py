"""The demo's pipeline: a newcomer sees the table, and it is right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cometmq.cli.demo import demo
from cometmq.cli.demo.demo_pipeline import WrongTotals, run_pipeline
from cometmq.client.sync import Producer
from cometmq.testing.cluster import cluster

from .pipeline_runs import cometmq


def test_the_demo_ends_with_a_table_of_what_was_paid(spark: Any) -> None:
    told = cometmq("demo", "--messages", "120")
    assert "demo-table: 8 rows written" in told
    rows = re.findall(r"(\d\d):00 - \d\d:00  (ada|bob) +(\d+) +([\d,.]+)", told)
    assert [row[:2] for row in rows] == [
        (f"{8 + n // 2:02}", ("ada", "bob")[n % 2]) for n in range(8)
    ]
    paid = [number for number in range(240) if number % 3 == 1]
    assert sum(int(row[2]) for row in rows) == len(paid)
    amount = sum(float(row[3].replace(",", "")) for row in rows)
    assert amount == sum(number * 7 % 1000 for number in paid)
    assert "in Parquet files in paid-orders/" in told


def test_a_table_that_does_not_follow_from_the_orders_fails_the_demo(
    spark: Any, tmp_path: Path
) -> None:
    orders = range(1, 30, 3)
    with cluster() as servers:
        with Producer("demo", name_servers=servers.name_servers) as producer:
            for number in orders:
                producer.send(demo._order(number))
        wrong = [demo._facts(number) for number in orders][1:]
        with pytest.raises(WrongTotals, match="ada"):
            run_pipeline(servers.name_servers, str(tmp_path), wrong, lambda text: None)
