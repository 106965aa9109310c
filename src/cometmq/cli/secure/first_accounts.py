"""The accounts that a set-up begins with, and their secrets."""

from __future__ import annotations

import secrets
from typing import Final

from cometmq.access.accounts.account import (
    Accounts,
    Acl,
    Decision,
    Entry,
    PolicyType,
    User,
    UserType,
)
from cometmq.access.accounts.changes import with_acl, with_user
from cometmq.access.accounts.resource import Resource
from cometmq.access.rules.need import Action, Kind

OPERATOR: Final = "operator"
SERVERS: Final = "servers"
CLIENT: Final = "client"
SPARK: Final = "spark"

_READ_AND_WRITE: Final = (Action.PUB, Action.SUB, Action.GET)
_CONSUME: Final = (Action.SUB, Action.GET)


def new_secret() -> str:
    return secrets.token_urlsafe(24)


def first_accounts(secret_of: dict[str, str]) -> Accounts:
    """An operator and the servers themselves, who may do everything; clients and Spark, who may use all topics."""
    accounts = Accounts()
    for name in (OPERATOR, SERVERS):
        accounts = with_user(accounts, User(name, secret_of[name], UserType.SUPER))
    # Spark's sink keeps its place under the name of a group.
    for name, on_groups in ((CLIENT, _CONSUME), (SPARK, _READ_AND_WRITE)):
        accounts = with_user(accounts, User(name, secret_of[name]))
        entries = (_allow(Kind.TOPIC, _READ_AND_WRITE), _allow(Kind.GROUP, on_groups))
        accounts = with_acl(accounts, name, Acl({PolicyType.CUSTOM: entries}))
    return accounts


def _allow(kind: Kind, actions: tuple[Action, ...]) -> Entry:
    return Entry(
        resource=Resource(kind, "", is_prefix=True), actions=actions, decision=Decision.ALLOW
    )
