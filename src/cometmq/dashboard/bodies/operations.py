"""Alerts, accounts, the audit log, and messages that wait."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from cometmq.dashboard.bodies.common import (
    Given,
    Name,
    PageQuery,
    Remark,
    Seen,
    SiteQuery,
    Text,
    Told,
)

AlertKind = Literal[
    "lag",
    "lag_ms",
    "disk",
    "replication",
    "dead_letters",
    "no_consumer",
    "broker_silent",
    "certificate",
]


class NewRule(Given, kw_only=True):
    """``threshold`` is messages, ms, bytes (replication), a ratio (disk) or days that are left (certificate).

    ``pattern`` is a name or ``*``.
    """

    name: Annotated[str, Meta(min_length=1, max_length=80)]
    kind: AlertKind
    threshold: Annotated[float, Meta(ge=0, le=1e15)] = 0.0
    pattern: Annotated[str, Meta(min_length=1, max_length=255)] = "*"
    for_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 60
    enabled: bool = True


class Rule(Told, kw_only=True):
    name: str
    kind: str
    threshold: float
    pattern: str
    for_seconds: int
    enabled: bool


class Alert(Told, kw_only=True):
    """``state`` is firing or resolved; ``silenced_until_ms`` is 0 if it is not silenced."""

    rule: str
    subject: str
    kind: str
    state: str
    value: float
    text: str
    since_ms: int
    resolved_ms: int | None
    silenced_until_ms: int


class AlertsView(Told, kw_only=True):
    firing: list[Alert]
    history: list[Alert]
    rules: list[Rule]
    webhook: bool
    """Whether alerts are posted somewhere, too; they always go to the log."""


class Silence(Given, kw_only=True):
    """``subject`` is a name, or ``*`` for all of the rule."""

    rule: Name
    subject: Annotated[str, Meta(min_length=1, max_length=255)] = "*"
    minutes: Annotated[int, Meta(ge=0, le=43_200)] = 60
    """0 ends it."""


class AccountRule(Told, kw_only=True):
    resource: str
    actions: list[str]
    source_ips: list[str]
    decision: str


class Account(Told, kw_only=True):
    """``kind`` is acl1 or acl2; passwords are never told."""

    name: str
    kind: str
    is_super: bool
    enabled: bool
    role: str
    """In the dashboard."""
    rules: list[AccountRule]


class Accounts(Seen, kw_only=True):
    rows: list[Account]
    checked: bool
    """Whether any broker checks accounts at all."""


class NewAccount(Given, kw_only=True):
    """An account of RocketMQ 5 (ACL 2). A null password leaves it as it is."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    password: Annotated[str, Meta(min_length=1, max_length=1024)] | None = None
    is_super: bool = False
    enabled: bool = True


class NewAccountRule(Given, kw_only=True):
    """All actions of an account on a resource, such as ``Topic:orders`` or ``Group:*``. No actions: removed."""

    resource: Annotated[str, Meta(min_length=1, max_length=300)]
    actions: Annotated[
        list[Literal["All", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List"]],
        Meta(max_length=8),
    ]
    source_ips: Annotated[list[Annotated[str, Meta(max_length=64)]], Meta(max_length=32)] = (
        msgspec.field(default_factory=list)
    )
    decision: Literal["Allow", "Deny"] = "Allow"


class AuditQuery(PageQuery, kw_only=True):
    user: Text = ""
    action: Text = ""


class AuditEntry(Told, kw_only=True):
    """A change that was asked for. ``result`` is done, partly, or the error."""

    at_ms: int
    user: str
    role: str
    peer: str
    action: str
    target: dict[str, Any]
    result: str


class AuditLog(Told, kw_only=True):
    rows: list[AuditEntry]
    total: int
    page: int
    size: int


class Waiting(Told, kw_only=True):
    """A message that is not delivered yet. ``recall`` is what takes it back, empty if it cannot be."""

    message_id: str
    topic: str
    keys: list[str]
    tags: str
    stored_ms: int
    due_ms: int
    body_bytes: int
    preview: str
    recall: str


class WaitingQuery(SiteQuery, kw_only=True):
    topic: Annotated[str, Meta(max_length=255)] = ""
    size: Annotated[int, Meta(ge=1, le=500)] = 100


class WaitingView(Told, kw_only=True):
    rows: list[Waiting]
    scanned: int
    notes: list[Remark]


class Recall(Given, kw_only=True):
    """``handle`` is what the row says under ``recall``."""

    topic: Name
    handle: Annotated[str, Meta(min_length=1, max_length=2048)]


class OpenTransaction(Told, kw_only=True):
    message_id: str
    topic: str
    producer_group: str
    keys: list[str]
    stored_ms: int
    checks: int
    preview: str


class OpenTransactions(Told, kw_only=True):
    rows: list[OpenTransaction]
    scanned: int
    notes: list[Remark]


class Pipeline(Told, kw_only=True):
    """A Spark pipeline. ``state`` is running, silent (it should have reported), ended or failed."""

    name: str
    state: str
    topic: str
    group: str
    lag: int | None
    rows_per_second: float | None
    started_ms: int
    reported_ms: int
    last_error: str


class Pipelines(Told, kw_only=True):
    rows: list[Pipeline]
    notes: list[Remark]
