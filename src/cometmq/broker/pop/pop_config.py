"""Settings of POP consumption."""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.base.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class PopConfig:
    retry_percent: int = setting(
        "popFromRetryProbability",
        "Percentage of pops that look for messages to retry first.",
        default=20,
        low=0,
        high=100,
        live=True,
    )
    is_retry_v2: bool = setting(
        "enableRetryTopicV2",
        "Retry messages through %RETRY%group+topic, which is unambiguous, instead of "
        "%RETRY%group_topic.",
        default=False,
        live=True,
    )
    is_retry_v1_read: bool = setting(
        "retrieveMessageFromPopRetryTopicV1",
        "With enableRetryTopicV2: also deliver what is left in %RETRY%group_topic.",
        default=True,
        live=True,
    )
    waiting_max: int = setting(
        "maxPopPollingSize",
        "Maximum number of pops that wait for a message at once.",
        default=100_000,
        low=0,
        live=True,
    )
    waiting_of_group_max: int = setting(
        "popPollingSize",
        "Maximum number of pops of one group that wait for messages of one topic at once.",
        default=1024,
        low=0,
        live=True,
    )
    check_point_max: int = setting(
        "popCheckPointMax",
        "Maximum number of pops with unacknowledged messages; at this limit, pops get no messages. "
        "Not in RocketMQ.",
        default=200_000,
        low=1,
        live=True,
    )
