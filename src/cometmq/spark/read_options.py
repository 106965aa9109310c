"""Options that all formats have which read messages."""

from __future__ import annotations

import re

from cometmq.base.errors import UsageError
from cometmq.model.names import stored_topic_fault
from cometmq.spark.columns.schema import chosen_columns
from cometmq.spark.errors import BadOption
from cometmq.spark.options import OptionReader
from cometmq.spark.queue_offsets import Positions, parse_positions, parse_time


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
