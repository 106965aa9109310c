"""Users and acls as the protocol writes them, and back; ``account_file`` uses the same form for acls."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cometmq.access.accounts.account import (
    SUBJECT_PREFIX,
    USERS_MAX,
    Accounts,
    Acl,
    Entry,
    PolicyType,
    User,
    UserStatus,
    UserType,
)
from cometmq.access.accounts.changes import parse_entry, username_of
from cometmq.base.errors import RemoteProtocolError
from cometmq.protocol import fastjson
from cometmq.protocol.bodies import auth as bodies
from cometmq.protocol.json_body import JsonBody
from cometmq.protocol.refusal import Refused


class AccountTable(JsonBody):
    """Reply to 29007: everything a replica needs, passwords included. A repr does not show them."""

    LIMITS = fastjson.TABLE

    users: list[bodies.User] = msgspec.field(default_factory=list)
    acls: list[bodies.Acl] = msgspec.field(default_factory=list)


def encode_table(accounts: Accounts) -> bytes:
    users = [user_body(user, with_password=True) for user in accounts.users.values()]
    return AccountTable(users=users, acls=list(all_acls(accounts))).encode()


def decode_table(body: bytes) -> Accounts:
    """Raises RemoteProtocolError."""
    table = AccountTable.decode(body)
    if len(table.users) > USERS_MAX:
        raise RemoteProtocolError(f"expected at most {USERS_MAX} users, got {len(table.users)}")
    try:
        users = {one.username: _user_of(one) for one in table.users}
        return Accounts(users, acls_of(table.acls))
    except (ValueError, Refused) as error:
        raise RemoteProtocolError(f"expected a table of accounts: {error}") from None


def acls_of(given: Iterable[bodies.Acl]) -> dict[str, Acl]:
    """By username. Raises Refused, ValueError."""
    return {username_of(one.subject): _acl_of(one) for one in given}


def user_body(user: User, *, with_password: bool) -> bodies.User:
    return bodies.User(
        username=user.username,
        password=user.password if with_password else None,
        user_type=user.user_type.value,
        user_status=user.status.value,
    )


def acl_body(username: str, acl: Acl, resource_filter: str = "") -> bodies.Acl | None:
    """None if no entry's resource contains the filter."""
    policies = []
    for policy in PolicyType:
        entries = [
            _entry_body(entry)
            for entry in acl.policies.get(policy, ())
            if resource_filter in str(entry.resource)
        ]
        if entries:
            policies.append(bodies.Policy(policy_type=policy.value, entries=entries))
    return bodies.Acl(subject=SUBJECT_PREFIX + username, policies=policies) if policies else None


def all_acls(accounts: Accounts) -> Iterable[bodies.Acl]:
    for username, acl in sorted(accounts.acls.items()):
        body = acl_body(username, acl)
        if body is not None:
            yield body


def _user_of(given: bodies.User) -> User:
    if not given.password:
        # With an empty secret, anybody could sign.
        raise ValueError(f"user {given.username!r} has no password")
    return User(
        given.username,
        given.password,
        UserType(given.user_type or UserType.NORMAL),
        UserStatus(given.user_status or UserStatus.ENABLED),
    )


def _acl_of(given: bodies.Acl) -> Acl:
    policies: dict[PolicyType, tuple[Entry, ...]] = {}
    for policy in given.policies:
        kind = PolicyType(policy.policy_type or PolicyType.CUSTOM)
        policies[kind] = tuple(parse_entry(entry) for entry in policy.entries)
    return Acl(policies)


def _entry_body(entry: Entry) -> bodies.PolicyEntry:
    return bodies.PolicyEntry(
        resource=str(entry.resource),
        actions=[action.value for action in entry.actions],
        source_ips=list(entry.source_texts) or None,
        decision=entry.decision.value,
    )
