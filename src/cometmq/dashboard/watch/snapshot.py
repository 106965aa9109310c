"""What all servers last told, put together. Values only; a page reads one and asks nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cometmq.admin.servers.figures import BrokerFigures
from cometmq.admin.target import Place
from cometmq.dashboard.bodies.common import Gap
from cometmq.dashboard.watch.lags import BrokerLags
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.names import DLQ_PREFIX, RETRY_PREFIX, SYSTEM_GROUPS, SYSTEM_TOPICS
from cometmq.model.topic import TopicConfig

NORMAL, RETRY, DEAD_LETTER, SYSTEM = "normal", "retry", "dead_letter", "system"

_SYSTEM_PREFIXES = ("rmq_sys_", "RMQ_SYS_", "SCHEDULE_TOPIC_", "%SYS%", "CID_RMQ_SYS_")
_SYSTEM_SUFFIX = "REPLY_TOPIC"


@dataclass(slots=True)
class BrokerState:
    """What one broker last told. ``silent_since_ms`` is None while it answers."""

    place: Place
    figures: BrokerFigures | None = None
    topics: dict[str, TopicConfig] = field(default_factory=dict)
    groups: dict[str, SubscriptionGroupConfig] = field(default_factory=dict)
    lags: BrokerLags = field(default_factory=BrokerLags)
    settings: dict[str, str] = field(default_factory=dict)
    in_sync: bool | None = None
    """Of a replica: whether a controller counts it among those that have everything; None: there is no controller."""
    silent_since_ms: int | None = None
    problem: str = ""
    told_ms: int = 0
    """When it last told its topics and lags; 0: never."""


@dataclass(slots=True)
class TopicState:
    by_broker: dict[str, TopicConfig] = field(default_factory=dict)
    consumers: list[str] = field(default_factory=list)
    end: int | None = None
    """How many messages were ever stored, as far as its consumers' positions tell."""


@dataclass(slots=True)
class GroupState:
    """``lag_ms`` is how old what comes next is, at most; None if nothing is behind."""

    by_broker: dict[str, SubscriptionGroupConfig] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    lag: int = 0
    tps: float = 0.0
    consumed_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Made anew in each round; nobody changes it afterwards."""

    at_ms: int
    clusters: tuple[str, ...] = ()
    brokers: tuple[BrokerState, ...] = ()
    topics: Mapping[str, TopicState] = field(default_factory=dict)
    groups: Mapping[str, GroupState] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    server_names: frozenset[str] = frozenset()
    """Of clusters and brokers: each has a topic of its name."""

    @property
    def masters(self) -> list[BrokerState]:
        return [one for one in self.brokers if one.place.is_master]

    def kind_of(self, topic: str) -> str:
        """normal, retry, dead_letter or system."""
        if topic.startswith(RETRY_PREFIX):
            return RETRY
        if topic.startswith(DLQ_PREFIX):
            return DEAD_LETTER
        if (
            topic in SYSTEM_TOPICS
            or topic in self.server_names
            or topic.startswith(_SYSTEM_PREFIXES)
            or topic.endswith(_SYSTEM_SUFFIX)
        ):
            return SYSTEM
        return NORMAL

    def broker(self, name: str, broker_id: int) -> BrokerState | None:
        for one in self.brokers:
            if one.place.broker_name == name and one.place.broker_id == broker_id:
                return one
        return None


def put_together(brokers: list[BrokerState], gaps: list[Gap], at_ms: int) -> Snapshot:
    topics: dict[str, TopicState] = {}
    groups: dict[str, GroupState] = {}
    for state in brokers:
        name = state.place.broker_name
        for topic, config in state.topics.items():
            topics.setdefault(topic, TopicState()).by_broker.setdefault(name, config)
        for group, definition in state.groups.items():
            if group not in SYSTEM_GROUPS:
                groups.setdefault(group, GroupState()).by_broker.setdefault(name, definition)
    for state in brokers:
        for topic, end in state.lags.ends.items():
            known = topics.setdefault(topic, TopicState())
            known.end = (known.end or 0) + end
        for group, lag in state.lags.groups.items():
            if group in SYSTEM_GROUPS:
                continue
            total = groups.setdefault(group, GroupState())
            total.tps += lag.tps
            for topic, one in lag.topics.items():
                total.topics[topic] = total.topics.get(topic, 0) + one.lag
                total.lag += one.lag
                if one.consumed_ms is not None:
                    total.consumed_ms = min(total.consumed_ms or one.consumed_ms, one.consumed_ms)
    for group in sorted(groups):
        for topic in groups[group].topics:
            if topic in topics:
                topics[topic].consumers.append(group)
    clusters = {one.place.cluster for one in brokers}
    return Snapshot(
        at_ms=at_ms,
        clusters=tuple(sorted(clusters)),
        server_names=frozenset(clusters | {one.place.broker_name for one in brokers}),
        brokers=tuple(brokers),
        topics=topics,
        groups=groups,
        gaps=tuple(gaps),
    )
