"""Settings that consumers of all kinds share, under RocketMQ's keys and with its defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting
from cometmq.client.client_config import ClientConfig, check_bounds
from cometmq.client.consume_timestamp import start_ms
from cometmq.client.core.consume.rebalance import find_strategy
from cometmq.model.allocation import Strategy
from cometmq.model.consumption import ConsumeFromWhere, MessageModel


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """How consumers of a group share its queues and keep their positions."""

    message_model: str = setting(
        "messageModel",
        "CLUSTERING: each message goes to one consumer of the group; BROADCASTING: to every "
        "consumer.",
        default=MessageModel.CLUSTERING.value,
        choices=tuple(model.value for model in MessageModel),
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
    """How the group distributes queues: AVG, AVG_BY_CIRCLE, CONSISTENT_HASH, or a function; see ``model.allocation``.
    All consumers of a group must use the same one."""
    client: ClientConfig = field(default_factory=ClientConfig)

    def __post_init__(self) -> None:
        check_bounds(self)
        find_strategy(self.allocation)

    def with_name_servers(self, name_servers: str | Sequence[str] | None) -> Self:
        """A copy with these name servers, if any are given. Raises UsageError for an invalid address."""
        return replace(self, client=self.client.with_name_servers(name_servers))

    @property
    def is_broadcast(self) -> bool:
        return self.message_model == MessageModel.BROADCASTING


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConfig(GroupConfig):
    """The same, for a consumer that finds out by itself where to start in a queue."""

    consume_from_where: str = setting(
        "consumeFromWhere",
        "Where a new group starts in a queue.",
        default=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET.value,
        choices=tuple(where.value for where in ConsumeFromWhere),
    )
    consume_timestamp: str = setting(
        "consumeTimestamp",
        "Where CONSUME_FROM_TIMESTAMP starts: local time as yyyyMMddHHmmss. Empty: half an hour before the start.",
        default="",
    )
    pull_error_delay_ms: int = setting(
        "pullTimeDelayMillsWhenException", "Pause after a failed pull.", default=1000, low=1
    )

    def __post_init__(self) -> None:
        # Not super(): a dataclass with slots is another class than the one that the method was written in.
        GroupConfig.__post_init__(self)
        self.timestamp_ms(0)

    def timestamp_ms(self, now_ms: int) -> int:
        """The time at which CONSUME_FROM_TIMESTAMP starts. Raises ConfigError if it cannot be parsed."""
        return start_ms(self.consume_timestamp, now_ms)


def check_suspension(suspend_ms: int, suspended_timeout_ms: int) -> None:
    """Raises ConfigError if a pull times out before the broker answers it."""
    if suspended_timeout_ms <= suspend_ms:
        raise ConfigError(
            f"consumerTimeoutMillisWhenSuspend {suspended_timeout_ms} must be above "
            f"brokerSuspendMaxTimeMillis {suspend_ms}"
        )
