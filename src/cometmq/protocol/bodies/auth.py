"""Accounts: users and access rules of RocketMQ 5 (3001 to 3010), and all accounts of RocketMQ 4 (54)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from cometmq.protocol import fastjson
from cometmq.protocol.json_body import JsonBody


class User(JsonBody):
    """``user_type`` is Super or Normal, ``user_status`` enable or disable. A repr must not show the password."""

    username: str = ""
    password: str | None = None
    user_type: str | None = None
    user_status: str | None = None

    def __repr__(self) -> str:
        return f"User(username={self.username!r}, user_type={self.user_type!r})"


class PolicyEntry(JsonBody):
    """For example resource ``Topic:orders``, actions ``["Pub"]``, decision ``Allow``."""

    resource: str | None = None
    actions: list[str] = msgspec.field(default_factory=list)
    source_ips: list[str] | None = None
    decision: str | None = None


class Policy(JsonBody):
    policy_type: str | None = None
    entries: list[PolicyEntry] = msgspec.field(default_factory=list)


class Acl(JsonBody):
    """All rules of one subject, such as ``User:alice``."""

    subject: str | None = None
    policies: list[Policy] = msgspec.field(default_factory=list)


class PlainAccess(JsonBody):
    """An account of RocketMQ 4. Permissions read ``topic=PUB|SUB``. A repr must not show the secret."""

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: list[str] | None = None
    group_perms: list[str] | None = None

    def __repr__(self) -> str:
        return f"PlainAccess(access_key={self.access_key!r}, admin={self.admin})"


class PlainAccessTable(JsonBody):
    """Reply to 54."""

    LIMITS: ClassVar[fastjson.Limits] = fastjson.TABLE

    global_white_addrs: list[str] = msgspec.field(default_factory=list)
    plain_access_configs: list[PlainAccess] = msgspec.field(default_factory=list)


def decode_users(body: bytes | memoryview) -> list[User]:
    """Reply to 3005, a bare array. Raises RemoteProtocolError."""
    return fastjson.decode(body, list[User], what="list of users")


def decode_acls(body: bytes | memoryview) -> list[Acl]:
    """Reply to 3010, a bare array. Raises RemoteProtocolError."""
    return fastjson.decode(body, list[Acl], what="list of access rules")


def encode_list(items: Sequence[User] | Sequence[Acl]) -> bytes:
    return fastjson.dumps(items)
