"""Users and their rules, as RocketMQ 5 has them (ACL 2): 3001 to 3010.

Every server keeps accounts of its own, so by default changes go to masters and slaves; questions go to masters.
"""

from __future__ import annotations

from collections.abc import Sequence

from cometmq.admin.calls import Calls
from cometmq.admin.errors import no_such
from cometmq.admin.fan_out import ByServer
from cometmq.admin.target import ALL_BROKERS, EVERY_SERVER, Target
from cometmq.base.errors import UsageError
from cometmq.protocol.bodies.auth import (
    Acl,
    Policy,
    PolicyEntry,
    User,
    decode_acls,
    decode_users,
)
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.fields import Header
from cometmq.protocol.headers.auth import AclHeader, ListAclHeader, ListUserHeader, UserHeader

SUBJECT_PREFIX = "User:"


class Users:
    """``admin.users``"""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def all(self, name_part: str = "", target: Target = ALL_BROKERS) -> ByServer[list[User]]:
        """The users of each server, by name, or those with this in their name (3005)."""
        header = ListUserHeader(filter=name_part or None)

        async def ask(address: str) -> list[User]:
            reply = await self._calls.ask(address, RequestCode.AUTH_LIST_USER, header)
            return decode_users(reply.body) if reply.body else []

        return await self._calls.fan_out.each(await self._calls.addresses(target), ask)

    async def get(self, username: str, target: Target = ALL_BROKERS) -> ByServer[User | None]:
        """A user at each server; None where there is none of that name (3004)."""
        _check_name(username)
        header = UserHeader(username=username)

        async def ask(address: str) -> User | None:
            reply = await self._calls.ask(address, RequestCode.AUTH_GET_USER, header)
            return User.decode(reply.body) if reply.body else None

        return await self._calls.fan_out.each(await self._calls.addresses(target), ask)

    async def create(
        self,
        username: str,
        password: str,
        *,
        user_type: str = "Normal",
        target: Target = EVERY_SERVER,
    ) -> ByServer[None]:
        """Create a user (3001). ``user_type`` is Normal or Super, who may do everything."""
        _check_name(username)
        if not password:
            raise UsageError(f"expected a password for user {username!r}, got an empty text")
        user = User(username=username, password=password, user_type=user_type)
        return await self._change(RequestCode.AUTH_CREATE_USER, user, target)

    async def update(
        self,
        username: str,
        *,
        password: str | None = None,
        user_type: str | None = None,
        user_status: str | None = None,
        target: Target = EVERY_SERVER,
    ) -> ByServer[None]:
        """Change what is given, and nothing else (3002). ``user_status`` is enable or disable."""
        _check_name(username)
        if not (password or user_type or user_status):
            raise UsageError("expected a new password, user_type or user_status")
        user = User(
            username=username, password=password, user_type=user_type, user_status=user_status
        )
        return await self._change(RequestCode.AUTH_UPDATE_USER, user, target)

    async def delete(self, username: str, target: Target = EVERY_SERVER) -> ByServer[None]:
        """Delete a user with its rules (3003). One that is not there is no mistake."""
        _check_name(username)
        header = UserHeader(username=username)
        return await send(self._calls, RequestCode.AUTH_DELETE_USER, header, b"", target)

    async def copy(
        self, from_address: str, to_address: str, usernames: Sequence[str] = ()
    ) -> list[str]:
        """Create or change users at one server so that they are as at another one: those named, or all.

        Returns:
            Their names.

        Raises:
            NoSuchName: the server does not have one of them; nothing was changed.
            PartialFailure: a server refused; the text says which users were copied.
        """
        source = Target(address=from_address)
        destination = Target(address=to_address)
        told = (await self.all("", source)).raise_failed("reading the users")
        users = {user.username: user for user in told.done[from_address]}
        for name in usernames:
            if name not in users:
                raise no_such(f"user at {from_address}", name, [*users])
        there = (await self.all("", destination)).raise_failed("reading the users")
        known = {user.username for user in there.done[to_address]}
        copied: list[str] = []
        for name in usernames or sorted(users):
            code = RequestCode.AUTH_UPDATE_USER if name in known else RequestCode.AUTH_CREATE_USER
            done = await self._change(code, users[name], destination)
            done.raise_failed(f"copying user {name!r}, after {', '.join(copied) or 'none'},")
            copied.append(name)
        return copied

    async def _change(self, code: RequestCode, user: User, target: Target) -> ByServer[None]:
        header = UserHeader(username=user.username)
        return await send(self._calls, code, header, user.encode(), target)


class Acls:
    """``admin.acls``: what users may do. A subject is ``User:`` and a name."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def all(
        self, subject_part: str = "", resource_part: str = "", target: Target = ALL_BROKERS
    ) -> ByServer[list[Acl]]:
        """The rules at each server, or those with this in their subject or resource (3010)."""
        header = ListAclHeader(
            subject_filter=subject_part or None, resource_filter=resource_part or None
        )

        async def ask(address: str) -> list[Acl]:
            reply = await self._calls.ask(address, RequestCode.AUTH_LIST_ACL, header)
            return decode_acls(reply.body) if reply.body else []

        return await self._calls.fan_out.each(await self._calls.addresses(target), ask)

    async def get(self, subject: str, target: Target = ALL_BROKERS) -> ByServer[Acl | None]:
        """All rules of a subject at each server; None where it has none (3009)."""
        header = AclHeader(subject=_subject(subject))

        async def ask(address: str) -> Acl | None:
            reply = await self._calls.ask(address, RequestCode.AUTH_GET_ACL, header)
            return Acl.decode(reply.body) if reply.body else None

        return await self._calls.fan_out.each(await self._calls.addresses(target), ask)

    async def create(
        self,
        subject: str,
        resources: Sequence[str],
        actions: Sequence[str],
        *,
        decision: str = "Allow",
        source_ips: Sequence[str] = (),
        target: Target = EVERY_SERVER,
    ) -> ByServer[None]:
        """Add rules to a subject (3006), one for each resource, such as ``Topic:orders`` or ``Group:*``.

        A rule for a resource that has one replaces it.

        Args:
            actions: of Pub, Sub, Create, Update, Delete, Get, List, All.
            decision: Allow or Deny.
            source_ips: only from these addresses or networks.
        """
        acl = new_acl(subject, resources, actions, decision=decision, source_ips=source_ips)
        return await self.put(acl, target)

    async def put(self, acl: Acl, target: Target = EVERY_SERVER) -> ByServer[None]:
        """Add the rules of an acl to those that its subject has (3006)."""
        return await self._change(RequestCode.AUTH_CREATE_ACL, acl, target)

    async def update(
        self,
        subject: str,
        resources: Sequence[str],
        actions: Sequence[str],
        *,
        decision: str = "Allow",
        source_ips: Sequence[str] = (),
        target: Target = EVERY_SERVER,
    ) -> ByServer[None]:
        """As ``create``, by the other request (3007): RocketMQ's servers do the same for both."""
        acl = new_acl(subject, resources, actions, decision=decision, source_ips=source_ips)
        return await self._change(RequestCode.AUTH_UPDATE_ACL, acl, target)

    async def delete(
        self,
        subject: str,
        resource: str | None = None,
        *,
        policy_type: str | None = None,
        target: Target = EVERY_SERVER,
    ) -> ByServer[None]:
        """Delete the rules of a subject: the one for a resource, or all (3008)."""
        header = AclHeader(subject=_subject(subject), resource=resource, policy_type=policy_type)
        return await send(self._calls, RequestCode.AUTH_DELETE_ACL, header, b"", target)

    async def copy(
        self, from_address: str, to_address: str, subjects: Sequence[str] = ()
    ) -> list[str]:
        """Add the rules of one server to those of another: of the subjects named, or of all.

        Returns:
            The subjects.

        Raises:
            NoSuchName: the server has no rules of one of them; nothing was changed.
            PartialFailure: a server refused; the text says which subjects were copied.
        """
        told = await self._at(from_address)
        for subject in subjects:
            if subject not in told:
                raise no_such(f"rules at {from_address} of", subject, [*told])
        copied: list[str] = []
        for subject in subjects or sorted(told):
            done = await self.put(told[subject], Target(address=to_address))
            done.raise_failed(f"copying rules of {subject!r}, after {', '.join(copied) or 'none'},")
            copied.append(subject)
        return copied

    async def _at(self, address: str) -> dict[str, Acl]:
        reply = await self._calls.ask(address, RequestCode.AUTH_LIST_ACL, ListAclHeader())
        found = decode_acls(reply.body) if reply.body else []
        return {acl.subject or "": acl for acl in found}

    async def _change(self, code: RequestCode, acl: Acl, target: Target) -> ByServer[None]:
        header = AclHeader(subject=_subject(acl.subject or ""))
        return await send(self._calls, code, header, acl.encode(), target)


def new_acl(
    subject: str,
    resources: Sequence[str],
    actions: Sequence[str],
    *,
    decision: str = "Allow",
    source_ips: Sequence[str] = (),
) -> Acl:
    """Rules for ``admin.acls``, one for each resource. Raises UsageError if something is missing."""
    if not resources or not actions:
        raise UsageError(
            "expected at least one resource, such as Topic:orders, and one action, such as Pub"
        )
    entries = [
        PolicyEntry(
            resource=resource,
            actions=list(actions),
            source_ips=list(source_ips) or None,
            decision=decision,
        )
        for resource in resources
    ]
    return Acl(subject=_subject(subject), policies=[Policy(entries=entries)])


async def send(
    calls: Calls, code: RequestCode, header: Header, body: bytes, target: Target
) -> ByServer[None]:
    """A change of accounts at all servers that a target means."""

    async def ask(address: str) -> None:
        await calls.ask(address, code, header, body)

    return await calls.fan_out.each(await calls.addresses(target, is_change=True), ask)


def _check_name(username: str) -> None:
    if not username.strip():
        raise UsageError("expected the name of a user, got an empty text")


def _subject(text: str) -> str:
    kind, colon, name = text.partition(":")
    if not colon or not kind or not name:
        raise UsageError(f"expected a subject such as User:alice, got {text!r}")
    return text
