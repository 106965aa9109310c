"""One Spark session that does what it is told: a JSON object a line in, one a line out.

    python spark_side.py DIRECTORY [--jars A.jar,B.jar] [--cometmq] [--conf NAME=VALUE ...]

Both sides of the comparison run this file, each with the Spark of its own environment and the same settings, so nothing
but PySpark may be imported here. A task says what to read (``format``, ``options``, ``path``) and where to put it:

    noop         nowhere; the rows are made, and that is all
    parquet      files below ``out``
    check        counted, and a sum of lengths and checksums of the bodies made, to see that both sides hold the same
    kafka        into a Kafka topic, from the columns of ours: how the Kafka side gets its messages

With ``stream`` it is a stream under ``Trigger.AvailableNow``. The reply has ``seconds``, what ``check`` found, and of a
stream the rows and times of each trigger.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--jars", default="")
    parser.add_argument("--cometmq", action="store_true")
    parser.add_argument("--conf", action="append", default=[])
    arguments = parser.parse_args()
    # Whatever prints to standard output must not come between the replies.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark = _session(arguments)
    print("{}", file=replies, flush=True)
    for line in sys.stdin:
        print(json.dumps(_do(spark, json.loads(line))), file=replies, flush=True)
    spark.stop()


def _session(arguments: argparse.Namespace) -> Any:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", f"{arguments.directory}/local")
        .config("spark.sql.warehouse.dir", f"{arguments.directory}/warehouse")
        # What our page on Spark advises; 4.0.0 does not know it, and its Kafka connector needs no Python.
        .config("spark.python.unix.domain.socket.enabled", "true")
    )
    if arguments.jars:
        builder = builder.config("spark.jars", arguments.jars)
    for setting in arguments.conf:
        name, _, value = setting.partition("=")
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if arguments.cometmq:
        from cometmq.spark import register

        register(spark)
    return spark


def _do(spark: Any, task: dict[str, Any]) -> dict[str, Any]:
    out = task.get("out", "")
    if out:
        shutil.rmtree(out, ignore_errors=True)
    began = time.perf_counter()
    found: dict[str, Any] = {}
    if task.get("stream"):
        found = _stream(spark, task, out)
    else:
        reader = spark.read.format(task["format"]).options(**task["options"])
        frame = reader.load(task["path"]) if "path" in task else reader.load()
        if task["to"] == "check":
            found = _check(frame, task["body"])
        elif task["to"] == "kafka":
            rows = frame.selectExpr("keys AS key", "body AS value", "queueId AS partition")
            rows.write.format("kafka").options(**task["target"]).save()
        elif task["to"] == "parquet":
            frame.write.mode("overwrite").parquet(out)
        else:
            frame.write.format("noop").mode("overwrite").save()
    found["seconds"] = time.perf_counter() - began
    if out and not task.get("keep"):
        shutil.rmtree(out)
    return found


def _check(frame: Any, body: str) -> dict[str, Any]:
    sums = f"count(*) AS rows, sum(length({body})) AS bytes, sum(crc32({body})) AS checksum"
    row = frame.selectExpr(*sums.split(", ")).first()
    return {"rows": row["rows"], "bytes": row["bytes"], "checksum": row["checksum"]}


def _stream(spark: Any, task: dict[str, Any], out: str) -> dict[str, Any]:
    writer = (
        spark.readStream.format(task["format"])
        .options(**task["options"])
        .load()
        .writeStream.format(task["to"])
        .option("checkpointLocation", f"{out}/checkpoint")
        .trigger(availableNow=True)
    )
    query = writer.start(f"{out}/rows") if task["to"] == "parquet" else writer.start()
    query.awaitTermination()
    steps = [step for step in query.recentProgress if step["numInputRows"]]
    return {"triggers": [[one["numInputRows"], one["durationMs"]] for one in steps]}


if __name__ == "__main__":
    main()
