"""How far all groups of a broker are, summed up from its reply to 317: thousands of groups in a few numbers each."""

from __future__ import annotations

from dataclasses import dataclass, field
from sys import intern

from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.bodies.stats import BrokerConsumeStats, OffsetLag


@dataclass(slots=True)
class TopicLag:
    """Of a group. ``consumed_ms``: the oldest time at which the last consumed message of a queue was stored."""

    lag: int = 0
    consumed_ms: int | None = None

    def add(self, one: OffsetLag) -> None:
        behind = one.broker_offset - one.consumer_offset
        if behind <= 0:
            return
        self.lag += behind
        if one.last_timestamp > 0:
            self.consumed_ms = min(self.consumed_ms or one.last_timestamp, one.last_timestamp)


@dataclass(slots=True)
class GroupLag:
    """Of a group at one broker; ``topics`` are those in which it has positions."""

    tps: float = 0.0
    topics: dict[str, TopicLag] = field(default_factory=dict)


@dataclass(slots=True)
class BrokerLags:
    """``ends`` has for each topic that is consumed how many messages were ever stored in its queues."""

    groups: dict[str, GroupLag] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)


def sums_of(told: BrokerConsumeStats) -> BrokerLags:
    lags = BrokerLags()
    seen: set[MessageQueue] = set()
    for of_groups in told.consume_stats_list:
        for name, tables in of_groups.items():
            # Each broker tells the same thousands of names: one text for all of them.
            group = lags.groups.setdefault(intern(name), GroupLag())
            for table in tables:
                group.tps += table.consume_tps
                for queue, one in table.offset_table.items():
                    name_of_topic = intern(queue.topic)
                    topic = group.topics.get(name_of_topic)
                    if topic is None:
                        topic = group.topics[name_of_topic] = TopicLag()
                    topic.add(one)
                    if queue not in seen:
                        seen.add(queue)
                        end = lags.ends.get(name_of_topic, 0) + one.broker_offset
                        lags.ends[name_of_topic] = end
    return lags
