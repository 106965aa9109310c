"""The options of ``spark.read`` and ``spark.readStream`` with format ``rocketmq-log``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from cometmq.base.errors import UsageError
from cometmq.model.subscription import build_subscription
from cometmq.spark.columns.schema import LOG_COLUMNS
from cometmq.spark.errors import BadOption
from cometmq.spark.options import OptionReader
from cometmq.spark.queue_offsets import Positions
from cometmq.spark.read_options import (
    ReadOptions,
    check_rows_per_trigger,
    check_topic_pattern,
    read_columns,
    read_limits,
    read_positions,
    topic_names,
)

DEFAULT_BROKER_NAME: Final = "log"

BY_QUEUE: Final = "queues"
BY_LOG: Final = "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions(ReadOptions):
    BATCH_ONLY: ClassVar = (*ReadOptions.BATCH_ONLY, "scan")

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
    check_crc: bool

    @property
    def tag_expression(self) -> str | None:
        return " || ".join(self.tags) or None

    def wants(self, topic: str) -> bool:
        if self.topic_pattern:
            return re.fullmatch(self.topic_pattern, topic) is not None
        return not self.topics or topic in self.topics


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
        **read_limits(options),
        check_crc=options.flag("checkCrc", False),
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
