"""Bodies about topics: lists of names, tables of configurations."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from cometmq.model.topic import DataVersion, TopicConfig
from cometmq.protocol import fastjson
from cometmq.protocol.json_body import JsonBody


class TopicList(JsonBody):
    """Replies to 206, 224, 304, 305, 311 to 313 and 343."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.TABLE

    topic_list: list[str] = msgspec.field(default_factory=list)
    broker_addr: str | None = None


class TopicConfigTable(JsonBody):
    """Reply to 21 and the main part of a registration. The mapping parts belong to static topics of RocketMQ 5."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.TABLE

    topic_config_table: dict[str, TopicConfig] = msgspec.field(default_factory=dict)
    data_version: DataVersion = msgspec.field(default_factory=DataVersion)
    mapping_data_version: DataVersion | None = None
    topic_queue_mapping_detail_map: dict[str, Any] | None = None
    topic_queue_mapping_info_map: dict[str, Any] | None = None


class TopicConfigList(JsonBody):
    """Request 18."""

    topic_config_list: list[TopicConfig] = msgspec.field(default_factory=list)


def decode_topic_config(body: bytes | memoryview) -> TopicConfig:
    """Reply to 351. Raises RemoteProtocolError."""
    return fastjson.decode(body, TopicConfig)


def encode_topic_config(config: TopicConfig) -> bytes:
    return fastjson.dumps(config)


def decode_data_version(body: bytes | memoryview) -> DataVersion:
    """Request and reply to 322. Raises RemoteProtocolError."""
    return fastjson.decode(body, DataVersion)


def encode_data_version(version: DataVersion) -> bytes:
    return fastjson.dumps(version)
