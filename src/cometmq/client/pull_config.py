"""Settings of a classic pull consumer, under RocketMQ's keys and with its defaults."""

from __future__ import annotations

from dataclasses import dataclass, field

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting
from cometmq.client.client_config import ClientConfig, check_bounds
from cometmq.client.core.consume.rebalance import find_strategy
from cometmq.model.allocation import Strategy
from cometmq.model.consumption import MessageModel


@dataclass(frozen=True, slots=True, kw_only=True)
class PullConsumerConfig:
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
    rebalance_interval_ms: int = setting(
        "rocketmq.client.rebalance.waitInterval",
        "How often the queues are rebalanced even if nothing has changed.",
        default=20_000,
        low=1,
    )
    local_offset_directory: str = setting(
        "rocketmq.client.localOffsetStoreDir",
        "Where a broadcasting consumer keeps its positions; empty: .rocketmq_offsets in the home directory.",
        default="",
    )
    allocation: str | Strategy = "AVG"
    """How the group distributes queues; see ``model.allocation``. All consumers of a group must use the same one."""
    client: ClientConfig = field(default_factory=ClientConfig)

    def __post_init__(self) -> None:
        check_bounds(self)
        find_strategy(self.allocation)
        if self.suspended_timeout_ms <= self.suspend_ms_max:
            raise ConfigError(
                f"consumerTimeoutMillisWhenSuspend {self.suspended_timeout_ms} must be above "
                f"brokerSuspendMaxTimeMillis {self.suspend_ms_max}"
            )

    @property
    def is_broadcast(self) -> bool:
        return self.message_model == MessageModel.BROADCASTING
