"""Messages: found, read, traced, sent again; dead letters and what waits."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cometmq.dashboard.bodies.common import (
    Given,
    Millis,
    Name,
    PageQuery,
    QueueId,
    Remark,
    Seen,
    SiteQuery,
    Told,
)


class MessagesQuery(SiteQuery, kw_only=True):
    """What is looked for in a topic. With ``key`` or ``id`` the index answers, else queues are read, newest first.

    A search has a budget: it stops after ``scan_max`` messages and says how to go on (``cursor``).
    """

    topic: Annotated[
        str, Meta(max_length=255, description="may be left out with a key or an id")
    ] = ""
    id: Annotated[str, Meta(max_length=255)] = ""
    key: Annotated[str, Meta(max_length=255)] = ""
    begin_ms: Millis | None = None
    end_ms: Millis | None = None
    tags: Annotated[str, Meta(max_length=1024, description="a || b")] = ""
    sql: Annotated[str, Meta(max_length=1024, description="SQL92 over properties")] = ""
    property: Annotated[str, Meta(max_length=1024, description="name=value")] = ""
    text: Annotated[str, Meta(max_length=255, description="part of the body")] = ""
    broker: Annotated[str, Meta(max_length=255)] = ""
    queue_id: QueueId | None = None
    size: Annotated[int, Meta(ge=1, le=200)] = 32
    scan_max: Annotated[int, Meta(ge=1, le=20_000)] = 2000
    cursor: Annotated[str, Meta(max_length=20_000)] = ""


class MessageOfList(Told, kw_only=True):
    """``preview`` is the beginning of the body, decoded and masked."""

    message_id: str
    offset_id: str
    topic: str
    tags: str
    keys: list[str]
    broker: str
    queue_id: int
    queue_offset: int
    stored_ms: int
    born_ms: int
    born_host: str
    body_bytes: int
    retries: int
    preview: str


class MessagesFound(Told, kw_only=True):
    """``scanned`` messages were looked at. ``cursor`` goes on where the search stopped; empty at the end."""

    rows: list[MessageOfList]
    scanned: int
    cursor: str
    notes: list[Remark]


class BodyView(Told, kw_only=True):
    """A body as text. ``format``: empty, json, avro, protobuf, messagepack, text or hex; others can be asked for."""

    format: str
    text: str
    bytes: int
    is_cut: bool
    """Whether the text is only the beginning: the whole is at ``…/body``."""
    masked: list[str]
    """Fields that are hidden by a rule."""
    problem: str


class MessageQuery(SiteQuery, kw_only=True):
    topic: Annotated[str, Meta(max_length=255)] = ""
    format: Literal["", "json", "avro", "protobuf", "messagepack", "text", "hex"] = ""


class MessageView(Told, kw_only=True):
    """One message. ``place`` names the record's position in the log."""

    message: MessageOfList
    properties: dict[str, str]
    system_properties: dict[str, str]
    flag: int
    store_host: str
    physical_offset: int
    body: BodyView


class Fate(Told, kw_only=True):
    """What became of a message in a group, by RocketMQ's words."""

    group: str
    state: str
    reason: str


class Fates(Told, kw_only=True):
    rows: list[Fate]


class TraceStep(Told, kw_only=True):
    """``kind`` is stored, sent, transaction, consumed or dead_letter; ``group`` is empty for what concerns all."""

    at_ms: int
    kind: str
    group: str
    client: str
    ok: bool
    duration_ms: int | None
    remark: Remark


class TraceView(Told, kw_only=True):
    """The way of a message, oldest first. ``notes`` say what is not known, and why."""

    message_id: str
    steps: list[TraceStep]
    notes: list[Remark]


class Resend(Given, kw_only=True):
    """To one ``group`` only (with retries from the start), or as a new message to a ``topic``."""

    topic: Annotated[str, Meta(max_length=255)] = ""
    """Of the message."""
    to_group: Annotated[str, Meta(max_length=255)] = ""
    to_topic: Annotated[str, Meta(max_length=255)] = ""


class DeadLetterGroup(Told, kw_only=True):
    """A group that has dead letters. ``count`` is null while it is not known."""

    group: str
    topic: str
    count: int | None
    updated_ms: int | None
    trend: list[float]


class DeadLettersQuery(PageQuery, kw_only=True):
    """Dead letters of a group, newest first. Grouped by topic and reason over all that were looked at."""

    begin_ms: Millis | None = None
    end_ms: Millis | None = None
    origin: Annotated[str, Meta(max_length=255, description="only those from this topic")] = ""
    scan_max: Annotated[int, Meta(ge=1, le=20_000)] = 2000


class DeadLetter(Told, kw_only=True):
    """``id`` names the dead letter itself; ``message_id`` the message."""

    id: str
    message_id: str
    origin_topic: str
    origin_id: str
    reason: Remark
    tags: str
    keys: list[str]
    died_ms: int
    born_ms: int
    retries: int
    body_bytes: int
    preview: str


class DeadLetterKind(Told, kw_only=True):
    origin_topic: str
    reason: Remark
    count: int
    newest_ms: int


class DeadLetters(Told, kw_only=True):
    group: str
    rows: list[DeadLetter]
    kinds: list[DeadLetterKind]
    total: int
    scanned: int
    page: int
    size: int
    notes: list[Remark]


class ResendLetters(Given, kw_only=True):
    """Deliver dead letters to their group again, and to no other. Either ``ids``, or ``all`` that match."""

    ids: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=64)]], Meta(max_length=1000)
    ] = msgspec.field(default_factory=list)
    all: bool = False
    origin: Annotated[str, Meta(max_length=255)] = ""
    begin_ms: Millis | None = None
    end_ms: Millis | None = None
    confirm: Annotated[str, Meta(max_length=255)] = ""
    """With ``all``: repeats the group's name."""


class ExportQuery(SiteQuery, kw_only=True):
    """As JSON lines, at most ``count`` messages."""

    topic: Name
    begin_ms: Millis | None = None
    end_ms: Millis | None = None
    tags: Annotated[str, Meta(max_length=1024)] = ""
    sql: Annotated[str, Meta(max_length=1024)] = ""
    property: Annotated[str, Meta(max_length=1024, description="name=value")] = ""
    text: Annotated[str, Meta(max_length=1024, description="a part of the body")] = ""
    broker: Annotated[str, Meta(max_length=255)] = ""
    queue_id: QueueId | None = None
    count: Annotated[int, Meta(ge=1, le=100_000)] = 10_000


class DeadLetterGroups(Seen, kw_only=True):
    rows: list[DeadLetterGroup]
