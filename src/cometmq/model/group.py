"""A subscription group's configuration."""

from __future__ import annotations

from typing import Any

import msgspec

from cometmq.model.ids import Int32, Int64
from cometmq.model.subscription import SubscriptionData


class SubscriptionGroupConfig(msgspec.Struct, kw_only=True, rename="camel"):
    """Rights and retry rules of a group. Fields that came with RocketMQ 5 are None if the writer did not know them."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool | None = None
    retry_queue_nums: Int32 = 1
    retry_max_times: Int32 = 16
    broker_id: Int64 = 0
    which_broker_when_consume_slowly: Int64 = 1
    notify_consumer_ids_changed_enable: bool = True
    group_retry_policy: dict[str, Any] | None = None
    group_sys_flag: Int32 | None = None
    consume_timeout_minute: Int32 | None = None
    subscription_data_set: list[SubscriptionData] | None = None
    attributes: dict[str, str] | None = None
