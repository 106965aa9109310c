"""The options of ``spark.read`` and ``spark.readStream`` with format ``rocketmq``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from cometmq.base.errors import UsageError
from cometmq.model.names import check_group
from cometmq.model.sql92.selector import Selector
from cometmq.model.subscription import SQL92, TAG, build_subscription
from cometmq.spark.errors import BadOption
from cometmq.spark.options import ConnectionOptions, OptionReader, read_connection
from cometmq.spark.queue_offsets import Word
from cometmq.spark.read_options import (
    ReadOptions,
    check_rows_per_trigger,
    check_topic_pattern,
    read_columns,
    read_limits,
    read_positions,
    topic_names,
)

DEFAULT_GROUP: Final = "CometMQ-Spark"
"""Pulls need a group. Nothing is ever committed to this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """``kind`` is TAG or SQL92; ``tags`` are the exact ones, as a broker compares only their hashes."""

    kind: str = TAG
    expression: str = "*"
    tags: tuple[str, ...] = ()

    @property
    def is_all(self) -> bool:
        return self.kind == TAG and not self.tags


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(ReadOptions):
    """Its ``repr`` holds no secret."""

    STREAM_ONLY: ClassVar = ("commitOffsets", *ReadOptions.STREAM_ONLY)

    connection: ConnectionOptions
    topics: tuple[str, ...]
    topic_pattern: str
    group: str
    commits: bool
    filter: Filter
    group_fallback: Word
    read_seconds: float
    pull_bytes: int


def read_source_options(values: Mapping[str, str]) -> SourceOptions:
    """All options, checked. Raises BadOption."""
    options = OptionReader(values)
    connection = read_connection(options)
    topics, pattern = _topics(options)
    group, commits = _group(options)
    start = read_positions(options, "startingOffsets", "startingTimestamp")
    end = read_positions(options, "endingOffsets", "endingTimestamp")
    if not group and any(
        positions is not None and positions.needs_group for positions in (start, end)
    ):
        raise BadOption(
            "option consumerGroup: expected the group whose offsets are meant by the position 'group', got none"
        )
    fallback = options.choice("groupFallback", "earliest", ("earliest", "latest"))
    source = SourceOptions(
        connection=connection,
        topics=topics,
        topic_pattern=pattern,
        group=group or DEFAULT_GROUP,
        commits=commits,
        filter=_filter(options),
        columns=read_columns(options),
        start=start,
        end=end,
        group_fallback=Word(fallback),
        **read_limits(options),
        read_seconds=options.seconds("readTimeout", 60.0),
        pull_bytes=options.bytes("pullBytes") or 4 * 1024 * 1024,
        given=frozenset(key.lower() for key in values),
    )
    options.finish()
    check_rows_per_trigger(source.min_rows, source.max_rows)
    return source


def _topics(options: OptionReader) -> tuple[tuple[str, ...], str]:
    # `load("orders")` arrives as the option "path".
    given = [name for name in ("topic", "topicPattern", "path") if options.has(name)]
    names, pattern, path = options.text("topic"), options.text("topicPattern"), options.text("path")
    if len(given) != 1:
        raise BadOption(
            "options topic and topicPattern: expected one of them (or the topic in load(...)), "
            f"got {' and '.join(given) if given else 'none'}"
        )
    if pattern:
        check_topic_pattern(pattern)
        return (), pattern
    return topic_names(names or path), ""


def _group(options: OptionReader) -> tuple[str, bool]:
    group = options.text("consumerGroup")
    commits = options.flag("commitOffsets", bool(group))
    if group:
        try:
            check_group(group)
        except UsageError as error:
            raise BadOption(
                f"option consumerGroup: expected the name of a group, got {group!r}: {error}"
            ) from None
    elif commits:
        raise BadOption(
            "option commitOffsets: expected consumerGroup beside it, got none; name the group"
        )
    return group, commits


def _filter(options: OptionReader) -> Filter:
    tags, sql = options.text("tags"), options.text("sql")
    if tags and sql:
        raise BadOption(
            "options tags and sql: expected one of them, got both; SQL can test TAGS too"
        )
    if sql:
        try:
            # Evaluated by brokers; RocketMQ 4.9 takes a bad one without a word and matches nothing.
            Selector(sql)
        except UsageError as error:
            raise BadOption(f"option sql: {error}") from None
        return Filter(kind=SQL92, expression=sql)
    try:
        subscription = build_subscription("", tags or "*")
    except UsageError:
        raise BadOption(f"option tags: expected * or tags like a || b, got {tags!r}") from None
    return Filter(expression=subscription.sub_string, tags=tuple(subscription.tags_set))
