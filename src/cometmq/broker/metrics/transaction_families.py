"""Transactions."""

from __future__ import annotations

from collections.abc import Sequence

from cometmq.broker.transaction.transactions import Transactions
from cometmq.monitor.family import Family, counter, gauge, histogram

_TOPIC = ("topic",)


def transaction_families(transactions: Transactions) -> Sequence[Family]:
    counts = transactions.counts
    return (
        counter(
            "rocketmq_commit_messages_total",
            _TOPIC,
            lambda: [((topic,), float(count)) for topic, count in counts.committed.items()],
        ),
        counter(
            "rocketmq_rollback_messages_total",
            _TOPIC,
            lambda: [((topic,), float(count)) for topic, count in counts.rolled_back.items()],
        ),
        gauge(
            "rocketmq_half_messages",
            _TOPIC,
            lambda: [
                ((topic,), float(count)) for topic, count in transactions.open_by_topic().items()
            ],
        ),
        histogram(
            "rocketmq_finish_message_latency",
            _TOPIC,
            lambda: [((topic,), times) for topic, times in counts.seconds.items()],
            # RocketMQ's name; the values are seconds.
            unit="milliseconds",
            text="Transaction finish latency",
        ),
    )
