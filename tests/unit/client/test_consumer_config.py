"""Settings of a push consumer: RocketMQ's keys, defaults and ranges."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from cometmq.base.errors import ConfigError, UsageError
from cometmq.base.settings import load, rows
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.core.consume.flow_limits import FlowLimits

DEFAULTS = {
    "consumeThreadMin": 20,
    "consumeThreadMax": 20,
    "consumeConcurrentlyMaxSpan": 2000,
    "pullThresholdForQueue": 1000,
    "pullThresholdSizeForQueue": 100,
    "pullThresholdForTopic": -1,
    "pullThresholdSizeForTopic": -1,
    "pullInterval": 0,
    "pullBatchSize": 32,
    "consumeMessageBatchMaxSize": 1,
    "postSubscriptionWhenPull": False,
    "maxReconsumeTimes": -1,
    "suspendCurrentQueueTimeMillis": 1000,
    "consumeTimeout": 15,
    "messageModel": "CLUSTERING",
    "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
    "pullTimeDelayMillsWhenException": 1000,
}


def test_defaults_are_those_of_rocketmq() -> None:
    known = {row.key: row.default for row in rows(PushConsumerConfig)}
    assert {key: known[key] for key in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("consume_thread_max", 0),
        ("consume_thread_max", 1001),
        ("consume_span_max", 65536),
        ("pull_threshold_for_queue", 0),
        ("pull_threshold_for_topic", 6553501),
        ("pull_threshold_for_topic", 0),
        ("pull_threshold_size_for_queue", 1025),
        ("pull_threshold_size_for_topic", 0),
        ("pull_interval_ms", -1),
        ("pull_batch_size", 1025),
        ("consume_batch_max", 0),
        ("suspend_queue_ms", 9),
        ("suspend_queue_ms", 30001),
        ("max_reconsume_times", -2),
        ("message_model", "clustering"),
        ("consume_from_where", "first"),
        ("consume_timestamp", "2026-01-31"),
        ("consume_timestamp", "20261331000000"),
        ("allocation", "GUESS"),
    ],
)
def test_what_is_out_of_range_is_refused(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=r"must be|unknown"):
        PushConsumerConfig(**{name: value})


def test_a_file_sets_them_by_rocketmqs_keys() -> None:
    config = load(PushConsumerConfig, {"pullBatchSize": "64", "namespace": "tenant"})
    assert (config.pull_batch_size, config.client.namespace) == (64, "tenant")
    with pytest.raises(ConfigError, match="pullBatchSize"):
        load(PushConsumerConfig, {"pullBatchsize": "64"})


def test_the_start_time_is_local_and_by_default_half_an_hour_ago() -> None:
    assert PushConsumerConfig().timestamp_ms(3_600_000) == 1_800_000
    wanted = datetime(2026, 1, 31, 23, 59, 59).astimezone().timestamp() * 1000
    assert PushConsumerConfig(consume_timestamp="20260131235959").timestamp_ms(0) == wanted


def test_limits_of_a_queue() -> None:
    assert PushConsumerConfig().limits(orderly=False) == FlowLimits(
        count_max=1000, size_mib_max=100, span_max=2000
    )
    assert PushConsumerConfig().limits(orderly=True).span_max is None
