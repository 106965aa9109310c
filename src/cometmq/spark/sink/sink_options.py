"""The options of ``df.write`` and ``df.writeStream`` with format ``rocketmq``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cometmq.base.errors import UsageError
from cometmq.client.core.send.prepare import check_sendable
from cometmq.model.messages.sink_mark import check_sink_id
from cometmq.model.names import check_group
from cometmq.spark.errors import BadOption
from cometmq.spark.options import ConnectionOptions, OptionReader, read_connection

DEFAULT_GROUP: Final = "CometMQ-Spark-Sink"

AUTO: Final = "auto"
REQUIRE: Final = "require"
OFF: Final = "off"

BATCH_BYTES: Final = 512 << 10
BATCH_BYTES_MAX: Final = 4 << 20
"""What a RocketMQ broker takes in one request by default."""

# Options of Spark itself that come along.
_OF_SPARK: Final = ("checkpointLocation", "queryName")


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkColumns:
    """Which column of a row is which part of a message."""

    body: str = "body"
    topic: str = "topic"
    keys: str = "keys"
    tags: str = "tags"
    properties: str = "properties"
    delay_level: str = "delayLevel"
    deliver_time: str = "deliverTime"
    sharding: str = "shardingKey"
    id: str = ""
    """The column that tells one row from another when a batch is repeated; without one, all that is sent does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Its ``repr`` holds no secret."""

    connection: ConnectionOptions
    topic: str
    columns: SinkColumns
    given_columns: frozenset[str]
    """Those parts of a message whose column was named by an option, and so has to be there."""
    group: str
    sink_id: str
    batch_id: int | None
    exactly_once: str
    batch_bytes: int
    send_seconds: float
    retry_seconds: float
    topic_queues: int


def read_sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Raises BadOption."""
    reader = OptionReader(options)
    for name in _OF_SPARK:
        reader.text(name)
    # What df.write.save("orders") and df.writeStream.start("orders") name.
    path = reader.text("path")
    topic = reader.text("topic", path)
    if path and path != topic:
        raise BadOption(f"option topic: expected one topic, got {topic!r} and {path!r}")
    group = reader.text("producerGroup", DEFAULT_GROUP)
    sink_id = reader.text("sinkId")
    try:
        if topic:
            check_sendable(topic)
        check_group(group)
        if sink_id:
            check_sink_id(sink_id)
    except UsageError as error:
        raise BadOption(f"options topic, producerGroup, sinkId: {error}") from None
    columns, given = _columns(reader)
    batch_bytes = reader.bytes("batchBytes") or BATCH_BYTES
    if batch_bytes > BATCH_BYTES_MAX:
        raise BadOption(
            f"option batchBytes: expected at most {BATCH_BYTES_MAX}, which a broker takes, got {batch_bytes}"
        )
    result = SinkOptions(
        connection=read_connection(reader),
        topic=topic,
        columns=columns,
        given_columns=given,
        group=group,
        sink_id=sink_id,
        batch_id=reader.whole("batchId", None, low=0),
        exactly_once=reader.choice("exactlyOnce", AUTO, (AUTO, REQUIRE, OFF)),
        batch_bytes=batch_bytes,
        send_seconds=reader.seconds("sendTimeout", 10.0),
        retry_seconds=reader.seconds("retryTimeout", 60.0),
        topic_queues=reader.whole("defaultTopicQueueNums", 4) or 4,
    )
    if result.batch_id is not None and not sink_id:
        raise BadOption(
            "option batchId: tells apart the batches of one sink; give sinkId as well, or neither"
        )
    reader.finish()
    return result


def _columns(reader: OptionReader) -> tuple[SinkColumns, frozenset[str]]:
    texts = {
        "body": reader.text("bodyColumn"),
        "topic": reader.text("topicColumn"),
        "keys": reader.text("keysColumn"),
        "tags": reader.text("tagsColumn"),
        "properties": reader.text("propertiesColumn"),
        "delay_level": reader.text("delayLevelColumn"),
        "deliver_time": reader.text("deliverTimeColumn"),
        "sharding": reader.text("shardingColumn"),
        "id": reader.text("idColumn"),
    }
    given = {part: name for part, name in texts.items() if name}
    return SinkColumns(**given), frozenset(given)
