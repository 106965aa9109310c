"""Settings of a classic pull consumer, under RocketMQ's keys and with its defaults."""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.base.settings import setting
from cometmq.client.group_config import GroupConfig, check_suspension
from cometmq.model.consumption import MessageModel


@dataclass(frozen=True, slots=True, kw_only=True)
class PullConsumerConfig(GroupConfig):
    message_model: str = setting(
        "messageModel",
        "CLUSTERING: positions are kept at the brokers, for the group; BROADCASTING: here, for this client.",
        default=MessageModel.CLUSTERING.value,
        choices=tuple(model.value for model in MessageModel),
    )
    pull_timeout_ms: int = setting(
        "consumerPullTimeoutMillis",
        "Timeout of a pull that does not wait for messages.",
        default=10_000,
        low=1,
    )
    suspend_ms_max: int = setting(
        "brokerSuspendMaxTimeMillis",
        "Maximum time that a broker may be asked to hold a pull.",
        default=20_000,
        low=1,
    )
    suspended_timeout_ms: int = setting(
        "consumerTimeoutMillisWhenSuspend",
        "Timeout of a pull that waits for messages, in total. Must be longer than "
        "brokerSuspendMaxTimeMillis.",
        default=30_000,
        low=1,
    )

    def __post_init__(self) -> None:
        GroupConfig.__post_init__(self)
        check_suspension(self.suspend_ms_max, self.suspended_timeout_ms)
