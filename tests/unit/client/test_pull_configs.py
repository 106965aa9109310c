"""Settings of the pull consumers: RocketMQ's keys and defaults, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from cometmq.base.errors import ConfigError, UsageError
from cometmq.base.settings import load
from cometmq.client.core.consume.assigned_queues import CacheLimits
from cometmq.client.lite_pull_config import LitePullConfig
from cometmq.client.pull_config import PullConsumerConfig


def test_defaults_are_those_of_rocketmq() -> None:
    lite = LitePullConfig()
    assert lite.limits == CacheLimits(
        count_all=10_000, count_queue=1000, bytes_queue=100 * 1024 * 1024, span=2000
    )
    assert (lite.pull_batch_size, lite.poll_timeout_ms) == (10, 5000)
    assert (lite.auto_commit, lite.auto_commit_interval_ms) == (True, 5000)
    assert (lite.suspend_ms, lite.suspended_timeout_ms) == (20_000, 30_000)
    classic = PullConsumerConfig()
    assert (classic.pull_timeout_ms, classic.suspend_ms_max) == (10_000, 20_000)
    assert not lite.is_broadcast
    assert not classic.is_broadcast


def test_settings_load_by_their_keys() -> None:
    lite = load(
        LitePullConfig,
        {"messageModel": "BROADCASTING", "pullThresholdForAll": "7", "autoCommit": "false"},
    )
    assert (lite.is_broadcast, lite.limits.count_all, lite.auto_commit) == (True, 7, False)
    assert load(PullConsumerConfig, {"consumerPullTimeoutMillis": "5"}).pull_timeout_ms == 5


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (LitePullConfig, {"auto_commit_interval_ms": 999}, "autoCommitIntervalMillis"),
        (LitePullConfig, {"pull_batch_size": 1025}, "pullBatchSize"),
        (LitePullConfig, {"message_model": "BOTH"}, "messageModel"),
        (LitePullConfig, {"suspended_timeout_ms": 20_000}, "consumerTimeoutMillisWhenSuspend"),
        (LitePullConfig, {"consume_timestamp": "yesterday"}, "consumeTimestamp"),
        (LitePullConfig, {"consume_timestamp": "20261331000000"}, "consumeTimestamp"),
        (PullConsumerConfig, {"suspended_timeout_ms": 20_000}, "consumerTimeoutMillisWhenSuspend"),
        (PullConsumerConfig, {"pull_timeout_ms": 0}, "consumerPullTimeoutMillis"),
    ],
)
def test_what_cannot_work_is_refused_by_its_key(
    kind: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        kind(**settings)


def test_an_unknown_strategy_is_named() -> None:
    for kind in (LitePullConfig, PullConsumerConfig):
        with pytest.raises(UsageError, match="FAIR"):
            kind(allocation="FAIR")


def test_a_start_by_time_is_half_an_hour_ago_unless_given() -> None:
    assert LitePullConfig().timestamp_ms(3_600_000) == 1_800_000
    one = LitePullConfig(consume_timestamp="20260131235958").timestamp_ms(0)
    other = LitePullConfig(consume_timestamp="20260131235959").timestamp_ms(0)
    assert other - one == 1000
