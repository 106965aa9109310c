"""From accounts of RocketMQ 4 to users and acls (``migrateAuthFromV1Enabled``). White addresses have no successor."""

from __future__ import annotations

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
from cometmq.access.plain.plain_account import Perm, PlainAccount, PlainTable
from cometmq.access.rules.need import Action, Kind


def migrated(accounts: Accounts, plain: PlainTable) -> tuple[Accounts, int]:
    """The accounts with those of the table that they lack, and how many these are. Raises Refused at a bound."""
    count = 0
    for account in plain.accounts.values():
        if account.access_key in accounts.users:
            continue
        user_type = UserType.SUPER if account.is_admin else UserType.NORMAL
        accounts = with_user(accounts, User(account.access_key, account.secret_key, user_type))
        accounts = with_acl(accounts, account.access_key, _acl_of(account))
        count += 1
    return accounts, count


def _acl_of(account: PlainAccount) -> Acl:
    custom = [
        _entry(Resource(kind, name), perm)
        for kind, perms in ((Kind.TOPIC, account.topics), (Kind.GROUP, account.groups))
        for name, perm in perms.items()
    ]
    default = [
        _entry(Resource(Kind.TOPIC, "", is_prefix=True), account.default_topic),
        _entry(Resource(Kind.GROUP, "", is_prefix=True), account.default_group),
    ]
    return Acl({PolicyType.CUSTOM: tuple(custom), PolicyType.DEFAULT: tuple(default)})


def _entry(resource: Resource, perm: Perm) -> Entry:
    if perm & Perm.DENY:
        return Entry(resource=resource, actions=(Action.ALL,), decision=Decision.DENY)
    actions = [Action.PUB] if perm & Perm.PUB else []
    if perm & Perm.SUB:
        actions.append(Action.SUB)
    return Entry(resource=resource, actions=tuple(actions), decision=Decision.ALLOW)
