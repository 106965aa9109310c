"""Bodies between clients and the broker's client registry: 34, 38, 46."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from cometmq.model.consumption import ConsumeFromWhere, ConsumeType, MessageModel
from cometmq.model.ids import Int32
from cometmq.model.subscription import SubscriptionData
from cometmq.protocol import fastjson
from cometmq.protocol.json_body import JsonBody

GROUPS_MAX: Final = 8192
"""Maximum number of producer or consumer groups of one client. A broker may allow fewer."""

SUBSCRIPTIONS_MAX: Final = 16_384
"""Maximum number of topics that one group of a client may subscribe to."""


class ProducerData(JsonBody):
    group_name: str


class ConsumerData(JsonBody):
    """One consumer group of a client. The three modes are names of the enums in ``model.consumption``.

    ``max_reconsume_times`` is our extension: RocketMQ's clients report it with the first message they send back.
    """

    group_name: str
    consume_type: str = ConsumeType.CONSUME_PASSIVELY.value
    message_model: str = MessageModel.CLUSTERING.value
    consume_from_where: str = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET.value
    subscription_data_set: Annotated[
        list[SubscriptionData], msgspec.Meta(max_length=SUBSCRIPTIONS_MAX)
    ] = msgspec.field(default_factory=list)
    unit_mode: bool = False
    max_reconsume_times: Int32 | None = None


class HeartbeatData(JsonBody):
    """Identifies a client. The last two came with RocketMQ 5: ``without_sub`` means that subscriptions are left out."""

    client_id: str = msgspec.field(name="clientID")
    producer_data_set: Annotated[list[ProducerData], msgspec.Meta(max_length=GROUPS_MAX)] = (
        msgspec.field(default_factory=list)
    )
    consumer_data_set: Annotated[list[ConsumerData], msgspec.Meta(max_length=GROUPS_MAX)] = (
        msgspec.field(default_factory=list)
    )
    heartbeat_fingerprint: Int32 | None = None
    without_sub: bool | None = None


class ConsumerList(JsonBody):
    """Reply to 38: client ids of a group."""

    consumer_id_list: list[str] = msgspec.field(default_factory=list)


class CheckClientConfigBody(JsonBody, kw_only=True):
    """Request 46: is this subscription one the broker can filter by?"""

    client_id: str | None = None
    group: str | None = None
    namespace: str | None = None
    subscription_data: SubscriptionData


def decode_heartbeat(body: bytes | memoryview) -> HeartbeatData:
    """Raises RemoteProtocolError if the body is not a heartbeat."""
    return fastjson.decode(body, HeartbeatData, mend=_name_all_modes)


def _name_all_modes(value: Any) -> None:
    """Turn ordinals into names: the C++ client sends the modes by ordinal, which Java's reader accepts."""
    consumers = value.get("consumerDataSet") if isinstance(value, dict) else None
    for consumer in consumers if isinstance(consumers, list) else ():
        if isinstance(consumer, dict):
            _name_modes(consumer)


def _name_modes(consumer: dict[str, Any]) -> None:
    modes: tuple[tuple[str, type[StrEnum]], ...] = (
        ("consumeType", ConsumeType),
        ("messageModel", MessageModel),
        ("consumeFromWhere", ConsumeFromWhere),
    )
    for key, names in modes:
        ordinal = consumer.get(key)
        if isinstance(ordinal, int) and 0 <= ordinal < len(names):
            consumer[key] = list(names)[ordinal].value
