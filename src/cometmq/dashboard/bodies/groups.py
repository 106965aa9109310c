"""Consumer groups: lag, members, resets."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from cometmq.dashboard.bodies.common import (
    Given,
    Millis,
    Name,
    Note,
    PageQuery,
    QueueId,
    Seen,
    SiteQuery,
    Told,
)


class GroupsQuery(PageQuery, kw_only=True):
    """``state`` chooses: lagging (anything not consumed), offline (no member), online."""

    state: Literal["", "lagging", "offline", "online"] = ""


class GroupOfList(Told, kw_only=True):
    """``members`` is null while nobody was asked yet; ``lag_ms`` is the age of what comes next, if anything."""

    name: str
    lag: int
    lag_ms: int | None
    tps: float
    members: int | None
    members_as_of_ms: int | None
    mode: str
    """CLUSTERING, BROADCASTING, or empty while not known"""
    topics: list[str]
    dead_letters: int | None
    brokers: list[str]
    trend: list[float]


class QueueOfGroup(Told, kw_only=True):
    """``owner`` is the client that consumes it, null if none does or tells."""

    topic: str
    broker: str
    queue_id: int
    broker_offset: int
    consumer_offset: int
    lag: int
    in_flight: int
    consumed_ms: int
    """When the last consumed message was stored; 0 if that is not known."""
    lag_ms: int | None
    owner: str | None


class Member(Told, kw_only=True):
    client_id: str
    address: str
    language: str
    version: str
    queues: int | None


class Subscription(Told, kw_only=True):
    topic: str
    expression: str
    expression_type: str


class GroupAtBroker(Told, kw_only=True):
    broker: str
    enabled: bool
    orderly: bool
    broadcast: bool
    retries: int
    retry_queues: int
    timeout_minutes: int


class GroupView(Seen, kw_only=True):
    """Everything about a group. ``stuck`` says why it is behind, most likely cause first."""

    name: str
    lag: int
    lag_ms: int | None
    in_flight: int
    tps: float
    dead_letters: int
    online: bool
    consume_type: str
    mode: str
    consume_from: str
    members: list[Member]
    subscriptions: list[Subscription]
    mismatches: list[str]
    queues: list[QueueOfGroup]
    definitions: list[GroupAtBroker]
    stuck: list[Note]


class NewGroup(Given, kw_only=True):
    """A group at all brokers of a cluster, or at one broker. What is there already is changed."""

    name: Name
    cluster: Annotated[str, Meta(max_length=255)] = ""
    broker: Annotated[str, Meta(max_length=255)] = ""
    enabled: bool = True
    orderly: bool = False
    broadcast: bool = True
    retries: Annotated[int, Meta(ge=-1, le=10_000)] = 16
    retry_queues: Annotated[int, Meta(ge=0, le=1024)] = 1
    timeout_minutes: Annotated[int, Meta(ge=1, le=10_000)] = 15


class ClientQuery(SiteQuery, kw_only=True):
    stacks: bool = False
    """What its threads do, too."""


class ClientQueue(Told, kw_only=True):
    topic: str
    broker: str
    queue_id: int
    commit_offset: int
    cached_messages: int
    locked: bool
    dropped: bool
    last_pull_ms: int
    last_consume_ms: int


class ClientRate(Told, kw_only=True):
    topic: str
    consume_rt_ms: float
    ok_tps: float
    failed_tps: float
    failed_in_hour: int


class ClientView(Told, kw_only=True):
    """What a consumer tells about itself."""

    client_id: str
    properties: dict[str, str]
    queues: list[ClientQueue]
    rates: list[ClientRate]
    stacks: str


class Reset(Given, kw_only=True):
    """Where a group is to go on in a topic: a time, the beginning, the end, or an offset of one queue."""

    topic: Name
    to: Literal["time", "beginning", "end", "offset"]
    time_ms: Millis | None = None
    offset: Annotated[int, Meta(ge=0, le=2**62)] | None = None
    broker: Annotated[str, Meta(max_length=255)] = ""
    queue_id: QueueId | None = None


class ConfirmedReset(Reset, kw_only=True):
    """``confirm`` repeats the group's name."""

    confirm: Annotated[str, Meta(max_length=255)]


class Move(Told, kw_only=True):
    """Of one queue. ``again`` messages are consumed again, or ``skipped`` are passed over."""

    broker: str
    queue_id: int
    before: int | None
    after: int
    min_offset: int
    max_offset: int
    again: int
    skipped: int


class ResetPreview(Told, kw_only=True):
    moves: list[Move]
    again: int
    skipped: int
    online: bool
    """Whether members are online: they are told, and go on there."""


class GroupConfirmed(Given, kw_only=True):
    """``confirm`` repeats the group's name."""

    confirm: Annotated[str, Meta(max_length=255)]
    cluster: Annotated[str, Meta(max_length=255)] = ""
    remove_offsets: bool = True
    """Else a group of the same name goes on where this one stopped."""
