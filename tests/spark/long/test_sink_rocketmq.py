"""The tests of the sink against RocketMQ 4.9.7's own broker: rows are written at least once there."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.spark import test_sink
from tests.spark.long.test_source_rocketmq import servers
from tests.spark.test_sink import Servers, TestBatches, bodies, stored, write

from cometmq.model.messages.properties import UNIQ_KEY, parse_properties
from cometmq.spark import register

__all__ = ["TestBatches", "servers"]

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def _registered(spark: Any) -> None:
    register(spark)


class TestColumns(test_sink.TestColumns):
    def test_delays(self, spark: Any, servers: Servers) -> None:
        """It has levels, and no times of delivery."""
        write(spark.sql("select 'soon' as body, 1 as delayLevel"), servers, topic="Delayed")
        deadline = time.monotonic() + 30
        while not (found := stored(servers, "Delayed")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert found[0].store_timestamp - found[0].born_timestamp >= 900


def test_a_repeated_batch_repeats_its_keys(spark: Any, servers: Servers) -> None:
    rows = spark.range(0, 50, numPartitions=2).selectExpr("cast(id as string) as body")
    for _ in range(2):
        write(rows, servers, topic="Twice", sinkId="job")
    assert bodies(servers, "Twice") == sorted([str(n) for n in range(50)] * 2)
    keys = [
        parse_properties(record.properties_text)[UNIQ_KEY] for record in stored(servers, "Twice")
    ]
    assert (len(keys), len(set(keys))) == (100, 50)


def test_exactly_once_can_be_asked_for(spark: Any, servers: Servers) -> None:
    with pytest.raises(Exception, match="does not keep rows from being written twice"):
        write(spark.sql("select 'x' as body"), servers, topic="Strict", exactlyOnce="require")
    assert bodies(servers, "Strict") == []
