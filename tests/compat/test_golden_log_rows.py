"""Stores written by real Java brokers, read as rows: every message of every topic, in every detail."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from tests.spark.log_stores import GOLDEN, unpack_golden

from cometmq.spark.columns.schema import COLUMNS, LOG_COLUMNS
from cometmq.spark.log.log_options import read_log_options
from cometmq.spark.log.log_planner import LogPlanner
from cometmq.spark.log.log_reader import LogTask

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("version", ["4.9.7", "5.5.0"])
@pytest.mark.parametrize("min_partitions", [1, 9])
@pytest.mark.parametrize("check_crc", ["true", "false"])
def test_rows_are_what_the_java_client_read(
    version: str, min_partitions: int, check_crc: str, tmp_path: Path
) -> None:
    root = unpack_golden(version, tmp_path)
    text = (GOLDEN / f"store-{version}" / "expected.jsonl").read_text(encoding="utf-8")
    expected = [json.loads(line) for line in text.splitlines()]
    options = read_log_options(
        {
            "path": str(root),
            "columns": ",".join(COLUMNS + LOG_COLUMNS),
            "minPartitions": str(min_partitions),
            "brokerName": "golden",
            "checkCrc": check_crc,
        }
    )
    pieces = LogPlanner(options).batch()
    assert len(pieces) >= min_partitions
    rows = []
    for piece in pieces:
        task = LogTask(options, options.columns)
        rows += [row for batch in task.read(piece) for row in batch.to_pylist()]
        task.close()
    # Both in the order of the log.
    assert [as_expected(row) for row in rows] == [of_interest(wanted) for wanted in expected]


def as_expected(row: dict[str, Any]) -> dict[str, Any]:
    body = row.pop("body")
    return row | {
        "bodySha256": hashlib.sha256(body).hexdigest(),
        "properties": dict(row["properties"]),
    }


def of_interest(wanted: dict[str, Any]) -> dict[str, Any]:
    return {
        "topic": wanted["topic"],
        "brokerName": "golden",
        "queueId": wanted["queueId"],
        "queueOffset": wanted["queueOffset"],
        "msgId": wanted["uniqKey"] or wanted["offsetMsgId"],
        "keys": wanted["keys"],
        "tags": wanted["tags"],
        "properties": wanted["properties"],
        "bornTimestamp": EPOCH + timedelta(milliseconds=wanted["bornTimestamp"]),
        "storeTimestamp": EPOCH + timedelta(milliseconds=wanted["storeTimestamp"]),
        "bornHost": wanted["bornHost"],
        "storeHost": wanted["storeHost"],
        "sysFlag": wanted["sysFlag"],
        "flag": wanted["flag"],
        "reconsumeTimes": wanted["reconsumeTimes"],
        "physicalOffset": wanted["physicalOffset"],
        "storedSize": wanted["size"],
        "bodySha256": wanted["bodySha256"],
    }
