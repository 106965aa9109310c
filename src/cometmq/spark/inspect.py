"""What is in a log: sizes, rates, top keys and tags, gaps and duplicates, as tables made of its records.

records = log_records(spark, "/var/store")
sizes(records).show()
gaps(records).show()

Each function takes such records and gives a DataFrame, so a pipeline may name it as a transform and any table may be
joined to it. Nothing is computed before a result is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cometmq.base.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

COLUMNS: Final = (
    "topic",
    "queueId",
    "queueOffset",
    "msgId",
    "keys",
    "tags",
    "storeTimestamp",
    "sysFlag",
    "physicalOffset",
    "storedSize",
)
"""What the functions below need of a record, in all."""

TOP: Final = 20
_PREPARED: Final = 4
_ROLLBACK: Final = 12


def log_records(spark: SparkSession, path: str, **options: str) -> DataFrame:
    """Every record of a store's log files, without bodies. ``options`` are those of the format ``rocketmq-log``."""
    return (
        spark.read.format("rocketmq-log")
        .options(**{"scan": "log", "columns": ",".join(COLUMNS), **options})
        .load(path)
    )


def sizes(records: DataFrame) -> DataFrame:
    """By topic: messages, queues, bytes in the log, and how large records are. The largest topic comes first."""
    from pyspark.sql import functions as F

    size = F.col("storedSize")
    return (
        records.groupBy("topic")
        .agg(
            F.count("*").alias("messages"),
            F.count_distinct("queueId").alias("queues"),
            F.sum(size).alias("bytes"),
            F.min(size).alias("min_bytes"),
            F.round(F.avg(size)).cast("bigint").alias("mean_bytes"),
            F.percentile_approx(size, 0.5).alias("p50_bytes"),
            F.percentile_approx(size, 0.99).alias("p99_bytes"),
            F.max(size).alias("max_bytes"),
            F.min("storeTimestamp").alias("first"),
            F.max("storeTimestamp").alias("last"),
        )
        .orderBy(F.desc("bytes"), "topic")
    )


def rates(records: DataFrame, every: str = "1 minute") -> DataFrame:
    """By topic and time: messages and bytes stored, in all and per second. Times without messages have no row.

    Args:
        every: length of a step, such as ``10 seconds`` or ``1 hour``.
    """
    from pyspark.sql import functions as F

    step = F.window("storeTimestamp", every)
    length = F.unix_micros("window.end") - F.unix_micros("window.start")
    per_second = F.lit(1_000_000) / length
    return (
        records.groupBy("topic", step)
        .agg(F.count("*").alias("messages"), F.sum("storedSize").alias("bytes"))
        .select(
            "topic",
            F.col("window.start").alias("start"),
            "messages",
            "bytes",
            F.round(F.col("messages") * per_second, 1).alias("messages_per_second"),
            F.round(F.col("bytes") * per_second, 1).alias("bytes_per_second"),
        )
        .orderBy("topic", "start")
    )


def top_keys(records: DataFrame, count: int = TOP) -> DataFrame:
    """The keys that most messages of a topic carry, over all topics. A message counts for each of its keys once."""
    from pyspark.sql import functions as F

    key = F.explode(F.array_distinct(F.split("keys", " "))).alias("key")
    found = records.select("topic", "storedSize", key).where("key != ''")
    return _top(found, "key", count)


def top_tags(records: DataFrame, count: int = TOP) -> DataFrame:
    """The tags that most messages of a topic have, over all topics."""
    return _top(records.where("tags is not null"), "tags", count)


def gaps(records: DataFrame) -> DataFrame:
    """Offsets that are missing between two records of a queue: lost, damaged, or never given.

    What expired before the first record that is left is no gap.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    in_order = Window.partitionBy("topic", "queueId").orderBy("queueOffset")
    return (
        records.where(_is_in_queue())
        .select(
            "topic",
            "queueId",
            "queueOffset",
            F.lag("queueOffset").over(in_order).alias("before"),
        )
        .where("queueOffset > before + 1")
        .select(
            "topic",
            "queueId",
            (F.col("before") + 1).alias("first_missing"),
            (F.col("queueOffset") - 1).alias("last_missing"),
            (F.col("queueOffset") - F.col("before") - 1).alias("missing"),
        )
        .orderBy(F.desc("missing"), "topic", "queueId", "first_missing")
    )


def duplicate_offsets(records: DataFrame) -> DataFrame:
    """Offsets that more than one record of a queue has: a topic was deleted and made anew, or something went wrong."""
    from pyspark.sql import functions as F

    return (
        records.where(_is_in_queue())
        .groupBy("topic", "queueId", "queueOffset")
        .agg(
            F.count("*").alias("copies"),
            F.sort_array(F.collect_list("physicalOffset")).alias("at"),
        )
        .where("copies > 1")
        .orderBy("topic", "queueId", "queueOffset")
    )


def duplicate_messages(records: DataFrame) -> DataFrame:
    """Messages that are in a topic more than once: sent again after a timeout, or replayed."""
    from pyspark.sql import functions as F

    return (
        records.where(_is_in_queue())
        .groupBy("topic", "msgId")
        .agg(
            F.count("*").alias("copies"),
            F.min("storeTimestamp").alias("first"),
            F.max("storeTimestamp").alias("last"),
            F.sort_array(F.collect_list("physicalOffset")).alias("at"),
        )
        .where("copies > 1")
        .orderBy(F.desc("copies"), "topic", "msgId")
    )


def _top(found: DataFrame, name: str, count: int) -> DataFrame:
    from pyspark.sql import functions as F

    if count < 1:
        raise UsageError(f"expected a count of at least 1, got {count}")
    return (
        found.groupBy("topic", name)
        .agg(F.count("*").alias("messages"), F.sum("storedSize").alias("bytes"))
        .orderBy(F.desc("messages"), "topic", name)
        .limit(count)
    )


def _is_in_queue() -> Column:
    """Prepared and rolled back messages have no place in a queue, and offset 0."""
    from pyspark.sql import functions as F

    kind = F.col("sysFlag").bitwiseAND(_ROLLBACK)
    return ~kind.isin(_PREPARED, _ROLLBACK)
