"""Accounts of the brokers, and the record of changes."""

from __future__ import annotations

import asyncio
from typing import Final

from cometmq.dashboard.bodies.common import Changed, SiteQuery
from cometmq.dashboard.bodies.operations import (
    Account,
    AccountRule,
    Accounts,
    AuditLog,
    AuditQuery,
    NewAccount,
    NewAccountRule,
)
from cometmq.dashboard.bodies.topics import Confirmed
from cometmq.dashboard.call import Call
from cometmq.dashboard.door.login import Roles
from cometmq.dashboard.problems import bad_request
from cometmq.dashboard.views.parts.changes import changed
from cometmq.dashboard.views.parts.gaps import gaps_of
from cometmq.protocol.bodies.auth import Acl, PlainAccess
from cometmq.protocol.reply_errors import BrokerReplyError

SUBJECT: Final = "User:"
ACL1, ACL2 = "acl1", "acl2"


async def accounts(call: Call[SiteQuery, None]) -> Accounts:
    """Those of all brokers by name; one that brokers have differently is shown as the first of them has it."""
    admin, roles = call.admin, call.desk.guard.roles
    users, acls, plain = await asyncio.gather(
        admin.users.all(), admin.acls.all(), admin.plain_accounts.all()
    )
    rules: dict[str, Acl] = {}
    for table in acls.values():
        for acl in table:
            rules.setdefault((acl.subject or "").removeprefix(SUBJECT), acl)
    found: dict[str, Account] = {}
    for listed in users.values():
        for user in listed:
            is_super = user.user_type == "Super"
            found.setdefault(
                user.username,
                Account(
                    name=user.username,
                    kind=ACL2,
                    is_super=is_super,
                    enabled=user.user_status != "disable",
                    role=roles.role(user.username, is_super=is_super).word,
                    rules=_rules(rules.get(user.username)),
                ),
            )
    for plain_table in plain.values():
        for one in plain_table.plain_access_configs:
            found.setdefault(one.access_key, _plain(one, roles))
    snapshot = call.site.snapshot
    # A broker without accounts, or with those of the other RocketMQ, says so: that is no gap.
    silent = {
        address: error
        for told in (users, plain)
        for address, error in told.failed.items()
        if not isinstance(error, BrokerReplyError)
    }
    return Accounts(
        as_of_ms=call.desk.clock.wall_ms(),
        incomplete=gaps_of(silent, snapshot),
        rows=[found[name] for name in sorted(found)],
        checked=any(
            one.settings.get(key) == "true"
            for one in snapshot.brokers
            for key in ("authenticationEnabled", "aclEnable")
        ),
    )


async def put_account(call: Call[SiteQuery, NewAccount]) -> Changed:
    given, users = call.body, call.admin.users
    kind = "Super" if given.is_super else "Normal"
    status = "enable" if given.enabled else "disable"
    known = await users.get(given.name)
    if any(user is not None for user in known.values()):
        done = await users.update(
            given.name, password=given.password, user_type=kind, user_status=status
        )
        return changed(done, f"changed {given.name}")
    if given.password is None:
        raise bad_request("expected a password for a new account", field="password")
    done = await users.create(given.name, given.password, user_type=kind)
    if not given.enabled and not done.failed:
        done = await users.update(given.name, user_status=status)
    return changed(done, f"created {given.name}")


async def delete_account(call: Call[SiteQuery, Confirmed]) -> Changed:
    name = call.names["account"]
    call.confirmed(call.body.confirm, name)
    if name == call.caller.user:
        raise bad_request("this is the account that you are logged in with", field="account")
    return changed(await call.admin.users.delete(name), f"deleted {name}")


async def put_account_rule(call: Call[SiteQuery, NewAccountRule]) -> Changed:
    name, given = call.names["account"], call.body
    if not given.actions:
        done = await call.admin.acls.delete(f"{SUBJECT}{name}", given.resource)
        return changed(done, f"{name} has no rule for {given.resource} any more")
    done = await call.admin.acls.create(
        f"{SUBJECT}{name}",
        [given.resource],
        given.actions,
        decision=given.decision,
        source_ips=given.source_ips,
    )
    return changed(done, f"{given.decision} {', '.join(given.actions)} on {given.resource}")


async def audit(call: Call[AuditQuery, None]) -> AuditLog:
    query = call.query
    rows, total = await asyncio.to_thread(
        call.desk.audit.read,
        user=query.user,
        action=query.action,
        text=query.q,
        first=(query.page - 1) * query.size,
        count=query.size,
    )
    return AuditLog(rows=rows, total=total, page=query.page, size=query.size)


def _rules(acl: Acl | None) -> list[AccountRule]:
    return [
        AccountRule(
            resource=entry.resource or "",
            actions=list(entry.actions),
            source_ips=list(entry.source_ips or []),
            decision=entry.decision or "",
        )
        for policy in (acl.policies if acl else [])
        for entry in policy.entries
    ]


def _plain(one: PlainAccess, roles: Roles) -> Account:
    given = [*(one.topic_perms or []), *(one.group_perms or [])]
    defaults = {"default topic": one.default_topic_perm, "default group": one.default_group_perm}
    rules = [
        AccountRule(resource=name, actions=[perm], source_ips=[], decision="Allow")
        for name, perm in defaults.items()
        if perm
    ]
    for text in given:
        name, _, perm = text.partition("=")
        rules.append(
            AccountRule(resource=name, actions=perm.split("|"), source_ips=[], decision="Allow")
        )
    return Account(
        name=one.access_key,
        kind=ACL1,
        is_super=one.admin,
        enabled=True,
        role=roles.role(one.access_key, is_super=one.admin).word,
        rules=rules,
    )


HANDLERS: Final = {
    "accounts": accounts,
    "put_account": put_account,
    "delete_account": delete_account,
    "put_account_rule": put_account_rule,
    "audit": audit,
}
