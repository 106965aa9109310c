"""Topics, and sending to them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cometmq.dashboard.bodies.common import Given, Name, PageQuery, QueueId, Seen, Told

MessageType = Literal["", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "UNSPECIFIED"]
Queues = Annotated[int, Meta(ge=1, le=1024)]


class TopicsQuery(PageQuery, kw_only=True):
    """``kind`` is empty for all kinds."""

    kind: Literal["", "normal", "retry", "dead_letter", "system"] = ""


class TopicOfList(Told, kw_only=True):
    """``messages``, ``updated_ms`` and ``tps`` are null while they are not known; ``consumers`` counts groups."""

    name: str
    kind: str
    message_type: str
    brokers: list[str]
    read_queues: int
    write_queues: int
    perm: str
    """rw, r, w, or "mixed" if brokers differ"""
    consumers: int
    messages: int | None
    updated_ms: int | None
    tps: float | None
    trend: list[float]


class TopicAtBroker(Told, kw_only=True):
    broker: str
    cluster: str
    read_queues: int
    write_queues: int
    perm: str
    order: bool
    attributes: dict[str, str]


class QueueOfTopic(Told, kw_only=True):
    broker: str
    queue_id: int
    min_offset: int
    max_offset: int
    updated_ms: int


class GroupOfTopic(Told, kw_only=True):
    """``lag`` is null if the group has no position in the topic."""

    name: str
    lag: int | None
    lag_ms: int | None
    members: int | None


class RouteOfTopic(Told, kw_only=True):
    broker: str
    cluster: str
    addresses: dict[str, str]
    """By broker id; 0 is the master's."""
    read_queues: int
    write_queues: int
    perm: str


class TopicView(Seen, kw_only=True):
    """Everything about a topic."""

    name: str
    kind: str
    message_type: str
    definitions: list[TopicAtBroker]
    route: list[RouteOfTopic]
    queues: list[QueueOfTopic]
    groups: list[GroupOfTopic]
    messages: int
    put_tps: float | None
    definitions_differ: bool
    """Whether brokers define it differently."""


class NewTopic(Given, kw_only=True):
    """A topic at all brokers of a cluster, or at one broker. What is there already is changed."""

    name: Name
    cluster: Annotated[str, Meta(max_length=255)] = ""
    broker: Annotated[str, Meta(max_length=255)] = ""
    read_queues: Queues = 8
    write_queues: Queues = 8
    perm: Literal["rw", "r", "w"] = "rw"
    order: bool = False
    message_type: MessageType = ""


class ChangedTopic(Given, kw_only=True):
    """What is null stays as it is. RocketMQ does not let the type of an existing topic be changed."""

    cluster: Annotated[str, Meta(max_length=255)] = ""
    broker: Annotated[str, Meta(max_length=255)] = ""
    read_queues: Queues | None = None
    write_queues: Queues | None = None
    perm: Literal["rw", "r", "w"] | None = None
    order: bool | None = None


class Confirmed(Given, kw_only=True):
    """``confirm`` repeats the name of what is deleted; ``cluster`` is needed if there are several."""

    confirm: Annotated[str, Meta(max_length=255)]
    cluster: Annotated[str, Meta(max_length=255)] = ""


class NewMessage(Given, kw_only=True):
    """``body`` is text, or base64 if ``encoding`` says so. Of ``delay_ms`` and ``delay_level`` one at most."""

    body: Annotated[str, Meta(max_length=6 * 1024 * 1024)]
    encoding: Literal["text", "base64"] = "text"
    tags: Annotated[str, Meta(max_length=255)] = ""
    keys: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=255)]], Meta(max_length=16)
    ] = msgspec.field(default_factory=list)
    properties: Annotated[
        dict[
            Annotated[str, Meta(min_length=1, max_length=128)],
            Annotated[str, Meta(max_length=4096)],
        ],
        Meta(max_length=64),
    ] = msgspec.field(default_factory=dict)
    delay_ms: Annotated[int, Meta(ge=0, le=259_200_000)] = 0
    delay_level: Annotated[int, Meta(ge=0, le=18)] = 0
    broker: Annotated[str, Meta(max_length=255)] = ""
    queue_id: QueueId | None = None


class Sent(Told, kw_only=True):
    status: str
    message_id: str
    offset_id: str
    broker: str
    queue_id: int
    queue_offset: int
