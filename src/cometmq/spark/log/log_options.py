"""The options of ``spark.read`` and ``spark.readStream`` with format ``rocketmq-log``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cometmq.base.errors import UsageError
from cometmq.model.subscription import build_subscription
from cometmq.spark.columns.schema import LOG_COLUMNS
from cometmq.spark.errors import BadOption
from cometmq.spark.options import TRIGGER_LIMITS, OptionReader, refuse_in_batch, refuse_in_stream
from cometmq.spark.queue_offsets import Positions
from cometmq.spark.read_options import (
    check_rows_per_trigger,
    check_topic_pattern,
    read_columns,
    read_positions,
    topic_names,
)

DEFAULT_BROKER_NAME: Final = "log"

STREAM_ONLY: Final = TRIGGER_LIMITS
BATCH_ONLY: Final = ("endingOffsets", "endingTimestamp", "scan")

BY_QUEUE: Final = "queues"
BY_LOG: Final = "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    path: str
    """The directory of the store."""
    log_paths: tuple[str, ...]
    """Directories of the log files; empty when they are below ``path``."""
    broker_name: str
    topics: tuple[str, ...]
    topic_pattern: str
    """Without either, all topics."""
    scan: str
    tags: tuple[str, ...]
    """Empty for all messages."""
    columns: tuple[str, ...]
    start: Positions | None
    end: Positions | None
    max_rows: int | None
    max_bytes: int | None
    min_rows: int | None
    max_delay_seconds: float
    min_partitions: int | None
    max_records_per_partition: int | None
    fail_on_data_loss: bool
    check_crc: bool
    discovery_seconds: float
    given: frozenset[str]
    """Lower-case names of all options that were given."""

    @property
    def tag_expression(self) -> str | None:
        return " || ".join(self.tags) or None

    def wants(self, topic: str) -> bool:
        if self.topic_pattern:
            return re.fullmatch(self.topic_pattern, topic) is not None
        return not self.topics or topic in self.topics

    def check_for_batch(self) -> None:
        """Raises BadOption."""
        refuse_in_batch(self.given, STREAM_ONLY)

    def check_for_stream(self) -> None:
        """Raises BadOption."""
        refuse_in_stream(self.given, BATCH_ONLY)


def read_log_options(values: Mapping[str, str]) -> LogOptions:
    """All options, checked. Raises BadOption."""
    options = OptionReader(values)
    topics, pattern = _topics(options)
    read = LogOptions(
        path=_path(options),
        log_paths=_paths(options.text("commitLogPath")),
        broker_name=options.text("brokerName", DEFAULT_BROKER_NAME),
        topics=topics,
        topic_pattern=pattern,
        scan=options.choice("scan", BY_QUEUE, (BY_QUEUE, BY_LOG)),
        tags=_tags(options),
        columns=read_columns(options, LOG_COLUMNS),
        start=_positions(options, "startingOffsets", "startingTimestamp"),
        end=_positions(options, "endingOffsets", "endingTimestamp"),
        max_rows=options.whole("maxRowsPerTrigger"),
        max_bytes=options.bytes("maxBytesPerTrigger"),
        min_rows=options.whole("minRowsPerTrigger"),
        max_delay_seconds=options.seconds("maxTriggerDelay", 15 * 60),
        min_partitions=options.whole("minPartitions"),
        max_records_per_partition=options.whole("maxRecordsPerPartition"),
        fail_on_data_loss=options.flag("failOnDataLoss", True),
        check_crc=options.flag("checkCrc", False),
        discovery_seconds=options.seconds("discoveryInterval", 10.0),
        given=frozenset(key.lower() for key in values),
    )
    options.finish()
    _check_together(read)
    return read


def _check_together(read: LogOptions) -> None:
    check_rows_per_trigger(read.min_rows, read.max_rows)
    if read.scan == BY_LOG:
        names = (
            "startingOffsets",
            "startingTimestamp",
            "endingOffsets",
            "endingTimestamp",
            "minPartitions",
            "maxRecordsPerPartition",
        )
        if wrong := [name for name in names if name.lower() in read.given]:
            raise BadOption(
                f"option {', '.join(wrong)}: expected none with scan=log, which reads the log from end to end; "
                "leave it out, or use scan=queues"
            )


def _path(options: OptionReader) -> str:
    path = options.text("path")
    if not path:
        raise BadOption(
            "option path: expected the directory of a store (a broker's storePathRootDir), got none; "
            "give it as option or in load(...)"
        )
    # Spark may hand over a path as a URL of the local file system.
    return path.removeprefix("file://").rstrip("/") or "/"


def _paths(text: str) -> tuple[str, ...]:
    return tuple(part.strip().rstrip("/") for part in text.split(",") if part.strip())


def _topics(options: OptionReader) -> tuple[tuple[str, ...], str]:
    names, pattern = options.text("topic"), options.text("topicPattern")
    if names and pattern:
        raise BadOption("options topic and topicPattern: expected one of them or none, got both")
    if pattern:
        check_topic_pattern(pattern)
    return topic_names(names) if names else (), pattern


def _tags(options: OptionReader) -> tuple[str, ...]:
    if options.has("sql"):
        raise BadOption(
            "option sql: expected none, as no broker is asked; filter the rows with where(...) instead"
        )
    tags = options.text("tags")
    try:
        return tuple(build_subscription("", tags or "*").tags_set)
    except UsageError:
        raise BadOption(f"option tags: expected * or tags like a || b, got {tags!r}") from None


def _positions(options: OptionReader, by_offset: str, by_time: str) -> Positions | None:
    positions = read_positions(options, by_offset, by_time)
    if positions is not None and positions.needs_group:
        raise BadOption(
            f"option {by_offset}: expected earliest, latest, a time or offsets, got group; "
            "committed offsets are asked from a broker, by the format rocketmq"
        )
    return positions
