"""Options that all formats have which read messages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, TypedDict

from cometmq.base.errors import UsageError
from cometmq.model.names import stored_topic_fault
from cometmq.spark.columns.schema import chosen_columns
from cometmq.spark.errors import BadOption
from cometmq.spark.options import TRIGGER_LIMITS, OptionReader, refuse_in_batch, refuse_in_stream
from cometmq.spark.queue_offsets import Positions, parse_positions, parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    STREAM_ONLY: ClassVar[tuple[str, ...]] = TRIGGER_LIMITS
    BATCH_ONLY: ClassVar[tuple[str, ...]] = ("endingOffsets", "endingTimestamp")

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
    discovery_seconds: float
    given: frozenset[str]
    """Lower-case names of all options that were given."""

    def check_for_batch(self) -> None:
        """Raises BadOption."""
        refuse_in_batch(self.given, self.STREAM_ONLY)

    def check_for_stream(self) -> None:
        """Raises BadOption."""
        refuse_in_stream(self.given, self.BATCH_ONLY)


class Limits(TypedDict):
    """The fields of ``ReadOptions`` that ``read_limits`` reads."""

    max_rows: int | None
    max_bytes: int | None
    min_rows: int | None
    max_delay_seconds: float
    min_partitions: int | None
    max_records_per_partition: int | None
    fail_on_data_loss: bool
    discovery_seconds: float


def read_limits(options: OptionReader) -> Limits:
    """Raises BadOption."""
    return {
        "max_rows": options.whole("maxRowsPerTrigger"),
        "max_bytes": options.bytes("maxBytesPerTrigger"),
        "min_rows": options.whole("minRowsPerTrigger"),
        "max_delay_seconds": options.seconds("maxTriggerDelay", 15 * 60),
        "min_partitions": options.whole("minPartitions"),
        "max_records_per_partition": options.whole("maxRecordsPerPartition"),
        "fail_on_data_loss": options.flag("failOnDataLoss", True),
        "discovery_seconds": options.seconds("discoveryInterval", 10.0),
    }


def topic_names(text: str) -> tuple[str, ...]:
    """Names divided by commas, at least one, sorted and each once. Raises BadOption."""
    topics = {part for name in text.split(",") if (part := name.strip())}
    for topic in sorted(topics):
        if fault := stored_topic_fault(topic):
            raise BadOption(
                f"option topic: expected names of topics divided by commas, got {topic!r}: {fault}"
            )
    if not topics:
        raise BadOption(f"option topic: expected names of topics divided by commas, got {text!r}")
    return tuple(sorted(topics))


def check_topic_pattern(pattern: str) -> None:
    """Raises BadOption."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise BadOption(
            f"option topicPattern: expected a regular expression, got {pattern!r}: {error}"
        ) from None


def read_columns(options: OptionReader, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """``columns`` and ``includeBody``. Raises BadOption."""
    columns = options.text("columns")
    includes_body = options.flag("includeBody", True)
    try:
        return chosen_columns(columns or None, includes_body, extra)
    except UsageError as error:
        raise BadOption(str(error)) from None


def read_positions(options: OptionReader, by_offset: str, by_time: str) -> Positions | None:
    """A start or an end, which is given in one of two options or in none. Raises BadOption."""
    offsets, time = options.text(by_offset), options.text(by_time)
    if offsets and time:
        raise BadOption(f"options {by_offset} and {by_time}: expected one of them, got both")
    if time:
        return Positions(parse_time(by_time, time))
    return parse_positions(by_offset, offsets) if offsets else None


def check_rows_per_trigger(min_rows: int | None, max_rows: int | None) -> None:
    """Raises BadOption."""
    if min_rows and max_rows and min_rows > max_rows:
        raise BadOption(
            f"options minRowsPerTrigger and maxRowsPerTrigger: expected the first to be at most the second, "
            f"got {min_rows} and {max_rows}"
        )
