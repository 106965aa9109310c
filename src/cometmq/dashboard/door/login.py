"""Whether a name and a password are an account of the cluster, and its role here.

The brokers decide. A request is signed with the password, and the same one with a random secret. The password is right
if a broker takes the first and refuses the second. A broker that takes both checks no accounts, and proves nothing.
"""

from __future__ import annotations

import dataclasses
import secrets
from dataclasses import dataclass
from typing import Final

from cometmq.admin.admin import Admin
from cometmq.admin.target import Place, Target
from cometmq.base.errors import CometError
from cometmq.client.client_config import ClientConfig, Credentials
from cometmq.dashboard.contract.route import Role
from cometmq.dashboard.dashboard_config import DashboardConfig, listed
from cometmq.dashboard.problems import Problem
from cometmq.protocol.reply_errors import BrokerReplyError

BROKERS_ASKED_MAX: Final = 3
"""Until one answers."""

EVERYBODY: Final = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """From the settings."""

    admins: frozenset[str]
    operators: frozenset[str]
    viewers: frozenset[str]

    @classmethod
    def of(cls, config: DashboardConfig) -> Roles:
        return cls(
            admins=frozenset(listed(config.admins)),
            operators=frozenset(listed(config.operators)),
            viewers=frozenset(listed(config.viewers)),
        )

    def role(self, name: str, *, is_super: bool) -> Role:
        """The highest one that an account has."""
        if is_super or name in self.admins:
            return Role.ADMIN
        if name in self.operators:
            return Role.OPERATOR
        if name in self.viewers or EVERYBODY in self.viewers:
            return Role.VIEWER
        return Role.ANYBODY


def with_account(config: ClientConfig, name: str, password: str) -> ClientConfig:
    """The same connections, signed with another account."""
    account = Credentials(access_key=name, secret_key=password)
    return dataclasses.replace(config, credentials=account)


async def check_password(
    config: ClientConfig, places: list[Place], name: str, password: str
) -> None:
    """Raises Problem: the password is wrong, or nobody can tell."""
    failure: CometError | None = None
    for place in places[:BROKERS_ASKED_MAX]:
        target = Target(address=place.address)
        try:
            given = await _answer(with_account(config, name, password), target)
            wrong = await _answer(with_account(config, name, secrets.token_urlsafe(24)), target)
        except CometError as error:
            failure = error
            continue
        if wrong is None:
            raise Problem(
                403,
                "no_accounts",
                f"broker {place.broker_name} checks no accounts, so nobody can log in",
                hint="turn accounts on (authenticationEnabled, authorizationEnabled), or use the dashboard on loopback",
            )
        if not _is_about_the_account(wrong):
            failure = wrong
        elif given is None or _is_about_permission(given):
            return
        elif _is_about_the_account(given):
            raise Problem(401, "wrong_password", "the name or the password is wrong")
        else:
            failure = given
    raise Problem(
        503,
        "no_broker",
        f"no broker could be asked whether the password is right: {failure or 'none is known'}",
        hint="try again when a broker answers",
    )


async def is_super(admin: Admin, name: str) -> bool:
    """Whether the brokers know an account as an administrator's, as far as ``admin`` may ask."""
    try:
        users = await admin.users.get(name)
        if any(user is not None and user.user_type == "Super" for user in users.values()):
            return True
        tables = await admin.plain_accounts.all()
    except CometError:
        return False
    accounts = [one for table in tables.values() for one in table.plain_access_configs]
    return any(one.access_key == name and one.admin for one in accounts)


async def _answer(config: ClientConfig, target: Target) -> BrokerReplyError | None:
    """The broker's refusal, None if it answers. Raises CometError if it does not reply."""
    async with Admin(config=config) as admin:
        told = await admin.brokers.runtime(target)
    for error in told.failed.values():
        if isinstance(error, BrokerReplyError):
            return error
        raise error
    return None


def _is_about_the_account(error: BrokerReplyError) -> bool:
    """Rather than about what it may do, or about the state of the broker."""
    text = (error.remark or "").lower()
    return any(word in text for word in _ACCOUNT_WORDS)


def _is_about_permission(error: BrokerReplyError) -> bool:
    """Of an account whose signature was right. A name is part of some texts, so both lists are looked at."""
    text = (error.remark or "").lower()
    return any(word in text for word in _PERMISSION_WORDS) and not _is_about_the_account(error)


# The texts of RocketMQ 5, and of RocketMQ 4.
_ACCOUNT_WORDS: Final = (
    "signature",
    "is not found",
    "is disabled",
    "no acl config",
    "no accesskey",
)
_PERMISSION_WORDS: Final = ("has no permission", "need admin permission", "no default permission")
