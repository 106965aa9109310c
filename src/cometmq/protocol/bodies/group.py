"""Bodies about subscription groups."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.ids import Int32
from cometmq.model.subscription import SubscriptionData
from cometmq.model.topic import DataVersion
from cometmq.protocol import fastjson
from cometmq.protocol.json_body import JsonBody


class SubscriptionGroupTable(JsonBody):
    """Reply to 201. ``forbidden_table`` (RocketMQ 5): topics a group must not read, by group."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.TABLE

    subscription_group_table: dict[str, SubscriptionGroupConfig] = msgspec.field(
        default_factory=dict
    )
    data_version: DataVersion = msgspec.field(default_factory=DataVersion)
    forbidden_table: dict[str, dict[str, Int32]] | None = None


class SubscriptionGroupList(JsonBody):
    """Request 225."""

    group_config_list: list[SubscriptionGroupConfig] = msgspec.field(default_factory=list)


class GroupList(JsonBody):
    """Reply to 300."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.TABLE

    group_list: list[str] = msgspec.field(default_factory=list)


class SubscriptionOfGroup(JsonBody):
    """Reply to 345; without a subscription if the group is offline."""

    group: str
    topic: str | None = None
    subscription_data: SubscriptionData | None = None


class GroupForbidden(JsonBody):
    """Reply to 353."""

    group: str
    topic: str
    readable: bool | None = None


def decode_group_config(body: bytes | memoryview) -> SubscriptionGroupConfig:
    """Request 200, reply to 352. Raises RemoteProtocolError."""
    return fastjson.decode(body, SubscriptionGroupConfig)


def encode_group_config(config: SubscriptionGroupConfig) -> bytes:
    return fastjson.dumps(config)
