"""The blocking face of ``cometmq.admin.accounts``. Written by tools/admin_sync.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence

from cometmq.admin.accounts.plain_accounts import PlainAccounts as AsyncPlainAccounts
from cometmq.admin.accounts.plain_accounts import PlainAccountsVersion
from cometmq.admin.accounts.users import Acls as AsyncAcls
from cometmq.admin.accounts.users import Users as AsyncUsers
from cometmq.admin.fan_out import ByServer
from cometmq.admin.sync.room import Room
from cometmq.admin.target import ALL_BROKERS, EVERY_SERVER, Target
from cometmq.protocol.bodies.auth import Acl, PlainAccess, PlainAccessTable, User


class Users(Room[AsyncUsers]):
    """``admin.users``"""

    def all(self, name_part: str = "", target: Target = ALL_BROKERS) -> ByServer[list[User]]:
        """The users of each server, by name, or those with this in their name (3005)."""
        return self._run(self._aio.all, name_part, target)

    def get(self, username: str, target: Target = ALL_BROKERS) -> ByServer[User | None]:
        """A user at each server; None where there is none of that name (3004)."""
        return self._run(self._aio.get, username, target)

    def create(
        self,
        username: str,
        password: str,
        *,
        user_type: str = "Normal",
        target: Target = EVERY_SERVER,
    ) -> ByServer[None]:
        """Create a user (3001). ``user_type`` is Normal or Super, who may do everything."""
        return self._run(self._aio.create, username, password, user_type=user_type, target=target)

    def update(
        self,
        username: str,
        *,
        password: str | None = None,
        user_type: str | None = None,
        user_status: str | None = None,
        target: Target = EVERY_SERVER,
    ) -> ByServer[None]:
        """Change what is given, and nothing else (3002). ``user_status`` is enable or disable."""
        return self._run(
            self._aio.update,
            username,
            password=password,
            user_type=user_type,
            user_status=user_status,
            target=target,
        )

    def delete(self, username: str, target: Target = EVERY_SERVER) -> ByServer[None]:
        """Delete a user with its rules (3003). One that is not there is no mistake."""
        return self._run(self._aio.delete, username, target)

    def copy(self, from_address: str, to_address: str, usernames: Sequence[str] = ()) -> list[str]:
        """Create or change users at one server so that they are as at another one: those named, or all.

        Returns:
            Their names.

        Raises:
            NoSuchName: the server does not have one of them; nothing was changed.
            PartialFailure: a server refused; the text says which users were copied.
        """
        return self._run(self._aio.copy, from_address, to_address, usernames)


class Acls(Room[AsyncAcls]):
    """``admin.acls``: what users may do. A subject is ``User:`` and a name."""

    def all(
        self, subject_part: str = "", resource_part: str = "", target: Target = ALL_BROKERS
    ) -> ByServer[list[Acl]]:
        """The rules at each server, or those with this in their subject or resource (3010)."""
        return self._run(self._aio.all, subject_part, resource_part, target)

    def get(self, subject: str, target: Target = ALL_BROKERS) -> ByServer[Acl | None]:
        """All rules of a subject at each server; None where it has none (3009)."""
        return self._run(self._aio.get, subject, target)

    def create(
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
        return self._run(
            self._aio.create,
            subject,
            resources,
            actions,
            decision=decision,
            source_ips=source_ips,
            target=target,
        )

    def put(self, acl: Acl, target: Target = EVERY_SERVER) -> ByServer[None]:
        """Add the rules of an acl to those that its subject has (3006)."""
        return self._run(self._aio.put, acl, target)

    def update(
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
        return self._run(
            self._aio.update,
            subject,
            resources,
            actions,
            decision=decision,
            source_ips=source_ips,
            target=target,
        )

    def delete(
        self,
        subject: str,
        resource: str | None = None,
        *,
        policy_type: str | None = None,
        target: Target = EVERY_SERVER,
    ) -> ByServer[None]:
        """Delete the rules of a subject: the one for a resource, or all (3008)."""
        return self._run(
            self._aio.delete, subject, resource, policy_type=policy_type, target=target
        )

    def copy(self, from_address: str, to_address: str, subjects: Sequence[str] = ()) -> list[str]:
        """Add the rules of one server to those of another: of the subjects named, or of all.

        Returns:
            The subjects.

        Raises:
            NoSuchName: the server has no rules of one of them; nothing was changed.
            PartialFailure: a server refused; the text says which subjects were copied.
        """
        return self._run(self._aio.copy, from_address, to_address, subjects)


class PlainAccounts(Room[AsyncPlainAccounts]):
    """``admin.plain_accounts``. RocketMQ 5 has none of these: ``failed`` has ``RequestCodeNotSupported`` then."""

    def all(self, target: Target = ALL_BROKERS) -> ByServer[PlainAccessTable]:
        """All accounts and white addresses of each broker (54); with secrets, if the broker shows them."""
        return self._run(self._aio.all, target)

    def put(self, account: PlainAccess, target: Target = EVERY_SERVER) -> ByServer[None]:
        """Create an account, or change the fields of it that are given (50). The secret is needed in both cases."""
        return self._run(self._aio.put, account, target)

    def delete(self, access_key: str, target: Target = EVERY_SERVER) -> ByServer[None]:
        """Delete an account (51). Brokers that do not have it are in ``failed``."""
        return self._run(self._aio.delete, access_key, target)

    def versions(self, target: Target = ALL_BROKERS) -> ByServer[PlainAccountsVersion]:
        """Which state of its account files each broker has (52)."""
        return self._run(self._aio.versions, target)

    def set_white_addresses(
        self, addresses: Sequence[str], *, path: str | None = None, target: Target = EVERY_SERVER
    ) -> ByServer[None]:
        """Replace the addresses from which everybody may do everything (53).

        Args:
            path: of the account file at the broker; by default the main one.
        """
        return self._run(self._aio.set_white_addresses, addresses, path=path, target=target)
