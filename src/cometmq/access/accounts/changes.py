"""What requests 3001 to 3010 change: each function returns new accounts, or raises Refused with RocketMQ's text."""

from __future__ import annotations

import ipaddress
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

from cometmq.access.accounts.account import (
    ENTRIES_MAX,
    NAME_CHARS_MAX,
    SECRET_CHARS_MAX,
    SUBJECT_PREFIX,
    USERS_MAX,
    Accounts,
    Acl,
    Decision,
    Entry,
    Network,
    PolicyType,
    User,
    UserStatus,
    UserType,
)
from cometmq.access.accounts.resource import parse_resource
from cometmq.access.rules.need import Action
from cometmq.protocol.bodies import auth as bodies
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

E = TypeVar("E", bound=StrEnum)

_ONLY_SUPER = "The super user can only be {} by super user"


def create_user(
    accounts: Accounts, username: str | None, given: bodies.User, *, is_super: bool
) -> Accounts:
    """Args: is_super: whether the caller is a super user."""
    if username is None or not username.strip():
        raise Refused(ResponseCode.INVALID_PARAMETER, "The username is blank")
    if not given.password or not given.password.strip():
        raise _refused("password can not be blank")
    user_type = _member(UserType, given.user_type) or UserType.NORMAL
    if user_type is UserType.SUPER and not is_super:
        raise Refused(ResponseCode.SYSTEM_ERROR, _ONLY_SUPER.format("create"))
    if username in accounts.users:
        raise _refused("The user is existed")
    if len(accounts.users) >= USERS_MAX:
        raise _refused(f"there are {USERS_MAX} users already, no more are kept")
    status = _member(UserStatus, given.user_status) or UserStatus.ENABLED
    return with_user(accounts, User(username, given.password, user_type, status))


def update_user(
    accounts: Accounts, username: str | None, given: bodies.User, *, is_super: bool
) -> Accounts:
    if username is None or not username.strip():
        raise Refused(ResponseCode.INVALID_PARAMETER, "The username is blank")
    new_type = _member(UserType, given.user_type)
    if new_type is UserType.SUPER and not is_super:
        raise Refused(ResponseCode.SYSTEM_ERROR, _ONLY_SUPER.format("update"))
    user = accounts.users.get(username)
    if user is None:
        raise _refused("The user is not exist")
    if user.is_super and not is_super:
        raise _refused(_ONLY_SUPER.format("update"))
    changed = replace(
        user,
        password=given.password or user.password,
        user_type=new_type or user.user_type,
        status=_member(UserStatus, given.user_status) or user.status,
    )
    return with_user(accounts, changed)


def delete_user(accounts: Accounts, username: str | None, *, is_super: bool) -> Accounts:
    user = accounts.users.get(username or "")
    if user is None:
        return accounts
    if user.is_super and not is_super:
        raise _refused(_ONLY_SUPER.format("update"))
    return Accounts(
        {name: one for name, one in accounts.users.items() if name != user.username},
        {name: acl for name, acl in accounts.acls.items() if name != user.username},
    )


def merge_acl(accounts: Accounts, subject: str | None, given: bodies.Acl) -> Accounts:
    """Requests 3006 and 3007: an entry for a resource that is known replaces the old one."""
    username = username_of(given.subject or subject)
    if username not in accounts.users:
        raise _refused(f"The subject of {given.subject or subject} is not exist.")
    if not given.policies:
        raise _refused("The policies is empty.")
    acl = accounts.acls.get(username, Acl())
    for policy in given.policies:
        if not policy.entries:
            raise _refused("The policy entries is empty.")
        policy_type = _member(PolicyType, policy.policy_type) or PolicyType.CUSTOM
        acl = _with_entries(acl, policy_type, [parse_entry(entry) for entry in policy.entries])
    return with_acl(accounts, username, acl)


def delete_acl(
    accounts: Accounts, subject: str | None, policy_type: str | None, resource: str | None
) -> Accounts:
    """One entry, or the whole acl if no resource is given."""
    username = username_of(subject)
    if username not in accounts.users:
        raise _refused("The subject is not exist.")
    acl = accounts.acls.get(username)
    if acl is None:
        raise _refused("The acl is not exist.")
    if not resource:
        return with_acl(accounts, username, Acl())
    meant = parse_resource(resource)
    if meant is None:
        raise _refused("The resource is null.")
    chosen = _member(PolicyType, policy_type) or PolicyType.CUSTOM
    policies = {
        one: tuple(entry for entry in entries if one is not chosen or entry.resource != meant)
        for one, entries in acl.policies.items()
    }
    return with_acl(accounts, username, Acl(policies))


def with_user(accounts: Accounts, user: User) -> Accounts:
    if len(user.username) > NAME_CHARS_MAX:
        raise _refused(f"The username is longer than {NAME_CHARS_MAX} characters")
    if len(user.password) > SECRET_CHARS_MAX:
        raise _refused(f"The password is longer than {SECRET_CHARS_MAX} characters")
    return Accounts({**accounts.users, user.username: user}, accounts.acls)


def with_acl(accounts: Accounts, username: str, acl: Acl) -> Accounts:
    """An acl without entries is none."""
    if acl.entry_count > ENTRIES_MAX:
        raise _refused(f"A user has at most {ENTRIES_MAX} policy entries")
    acls = {name: one for name, one in accounts.acls.items() if name != username}
    policies = {policy: entries for policy, entries in acl.policies.items() if entries}
    if policies:
        acls[username] = Acl(policies)
    return Accounts(accounts.users, acls)


def username_of(subject: str | None) -> str:
    """Of ``User:name``; an empty text if it is no user."""
    text = subject or ""
    return text.removeprefix(SUBJECT_PREFIX) if text.startswith(SUBJECT_PREFIX) else ""


def parse_entry(given: bodies.PolicyEntry) -> Entry:
    """Raises Refused with RocketMQ's text."""
    resource = parse_resource(given.resource)
    if resource is None or len(resource.name) > NAME_CHARS_MAX:
        raise _refused("The resource is null.")
    actions = [action for text in given.actions if (action := _member(Action, text)) is not None]
    if not actions:
        raise _refused("The actions is empty.")
    if Action.ANY in actions:
        raise _refused("The actions can not be Any.")
    decision = _member(Decision, given.decision)
    texts = tuple(given.source_ips or ())
    if len(texts) > ENTRIES_MAX:
        raise _refused(f"An entry has at most {ENTRIES_MAX} source ips")
    sources = tuple(_network(text) for text in texts)
    if decision is None:
        raise _refused("The decision is null or illegal.")
    return Entry(
        resource=resource,
        actions=tuple(dict.fromkeys(actions)),
        decision=decision,
        source_texts=texts,
        sources=sources,
    )


def _with_entries(acl: Acl, policy_type: PolicyType, entries: list[Entry]) -> Acl:
    merged = {entry.resource: entry for entry in acl.policies.get(policy_type, ())}
    merged.update({entry.resource: entry for entry in entries})
    return Acl({**acl.policies, policy_type: tuple(merged.values())})


def _network(text: str) -> Network:
    if not text.strip():
        raise _refused("The source ip is empty.")
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise _refused("The source ip is invalid.") from None


def _member(kind: type[E], text: str | None) -> E | None:
    """By its name, in any case."""
    wanted = (text or "").lower()
    return next((one for one in kind if one.value.lower() == wanted), None)


def _refused(text: str) -> Refused:
    return Refused(ResponseCode.NO_PERMISSION, text)
