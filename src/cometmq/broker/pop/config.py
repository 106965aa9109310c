"""Settings of POP consumption."""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.base.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class PopConfig:
    retry_percent: int = setting(
        "popFromRetryProbability",
        "In how many of a hundred pops the messages to be tried again come first.",
        default=20,
        low=0,
        high=100,
        live=True,
    )
    is_retry_v2: bool = setting(
        "enableRetryTopicV2",
        "Try messages again by %RETRY%group+topic, which cannot be mistaken, instead of %RETRY%group_topic.",
        default=False,
        live=True,
    )
    is_retry_v1_read: bool = setting(
        "retrieveMessageFromPopRetryTopicV1",
        "With enableRetryTopicV2: give out what still lies in %RETRY%group_topic.",
        default=True,
        live=True,
    )
    waiting_max: int = setting(
        "maxPopPollingSize",
        "Most pops that wait for a message at once.",
        default=100_000,
        low=0,
        live=True,
    )
    waiting_of_group_max: int = setting(
        "popPollingSize",
        "Most pops of one group that wait for a message of one topic at once.",
        default=1024,
        low=0,
        live=True,
    )
    check_point_max: int = setting(
        "popCheckPointMax",
        "Most pops whose messages are not all acknowledged; none is given out until there are fewer. Not RocketMQ's.",
        default=200_000,
        low=1,
        live=True,
    )
