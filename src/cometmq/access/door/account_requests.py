"""Requests about users and acls: 3001 to 3010, and 29007 of a slave that copies all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from cometmq.access.accounts.account import Accounts
from cometmq.access.accounts.account_bodies import acl_body, encode_table, user_body
from cometmq.access.accounts.changes import (
    create_user,
    delete_acl,
    delete_user,
    merge_acl,
    update_user,
    username_of,
)
from cometmq.access.accounts.sealed_table import NONCE, NONCE_CHARS_MIN, seal
from cometmq.access.door.account_keeper import AccountKeeper
from cometmq.access.identity import Identity
from cometmq.protocol.bodies.auth import Acl, User, encode_list
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.auth import AclHeader, ListAclHeader, ListUserHeader, UserHeader
from cometmq.protocol.refusal import Refused
from cometmq.protocol.request_signature import ACCESS_KEY
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

_DONE: Final = "not set any response code"
"""RocketMQ's remark of success."""

IdentityOf = Callable[[Connection, Command], Identity]


class AccountRequests:
    """
    Args:
        identity_of: whose request it is.
        shows_passwords: whether super users see them.
    """

    def __init__(
        self, keeper: AccountKeeper, identity_of: IdentityOf, *, shows_passwords: bool
    ) -> None:
        self._keeper = keeper
        self._identity_of = identity_of
        self._shows_passwords = shows_passwords

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.AUTH_CREATE_USER, self.create_user)
        dispatcher.add(RequestCode.AUTH_UPDATE_USER, self.update_user)
        dispatcher.add(RequestCode.AUTH_DELETE_USER, self.delete_user)
        dispatcher.add(RequestCode.AUTH_GET_USER, self.get_user)
        dispatcher.add(RequestCode.AUTH_LIST_USER, self.list_users)
        dispatcher.add(RequestCode.AUTH_CREATE_ACL, self.merge_acl)
        dispatcher.add(RequestCode.AUTH_UPDATE_ACL, self.merge_acl)
        dispatcher.add(RequestCode.AUTH_DELETE_ACL, self.delete_acl)
        dispatcher.add(RequestCode.AUTH_GET_ACL, self.get_acl)
        dispatcher.add(RequestCode.AUTH_LIST_ACL, self.list_acls)
        dispatcher.add(RequestCode.GET_ACCOUNTS, self.get_all)

    async def create_user(self, connection: Connection, command: Command) -> Command:
        return await self._set_user(connection, command, create_user)

    async def update_user(self, connection: Connection, command: Command) -> Command:
        return await self._set_user(connection, command, update_user)

    async def delete_user(self, connection: Connection, command: Command) -> Command:
        username = decode_fields(UserHeader, command.ext).username
        is_super = self._identity_of(connection, command).is_super
        await self._keeper.change(partial(delete_user, username=username, is_super=is_super))
        return command.reply(remark=_DONE)

    def get_user(self, connection: Connection, command: Command) -> Command:
        username = decode_fields(UserHeader, command.ext).username
        if not username:
            raise Refused(ResponseCode.INVALID_PARAMETER, "The username is blank")
        user = self._keeper.accounts.users.get(username)
        if user is None:
            return command.reply(remark=_DONE)
        with_password = self._shows_to(connection, command)
        body = user_body(user, with_password=with_password).encode()
        return command.reply(remark=_DONE, body=body)

    def list_users(self, connection: Connection, command: Command) -> Command:
        part = decode_fields(ListUserHeader, command.ext).filter or ""
        with_password = self._shows_to(connection, command)
        found = [
            user_body(user, with_password=with_password)
            for name, user in sorted(self._keeper.accounts.users.items())
            if part in name
        ]
        return command.reply(remark=_DONE, body=encode_list(found) if found else b"")

    async def merge_acl(self, connection: Connection, command: Command) -> Command:
        subject = decode_fields(AclHeader, command.ext).subject
        if not command.body:
            raise Refused(ResponseCode.SYSTEM_ERROR, "The body of acl is null")
        acl = Acl.decode(command.body)
        await self._keeper.change(partial(merge_acl, subject=subject, given=acl))
        return command.reply(remark=_DONE)

    async def delete_acl(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(AclHeader, command.ext)
        await self._keeper.change(
            partial(
                delete_acl,
                subject=header.subject,
                policy_type=header.policy_type,
                resource=header.resource,
            )
        )
        return command.reply(remark=_DONE)

    def get_acl(self, connection: Connection, command: Command) -> Command:
        username = username_of(decode_fields(AclHeader, command.ext).subject)
        accounts = self._keeper.accounts
        if username not in accounts.users:
            raise Refused(ResponseCode.NO_PERMISSION, "The subject is not exist.")
        acl = accounts.acls.get(username)
        body = None if acl is None else acl_body(username, acl)
        return command.reply(remark=_DONE, body=b"" if body is None else body.encode())

    def list_acls(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(ListAclHeader, command.ext)
        found = [
            body
            for username, acl in sorted(self._keeper.accounts.acls.items())
            if (header.subject_filter or "") in f"User:{username}"
            and (body := acl_body(username, acl, header.resource_filter or "")) is not None
        ]
        return command.reply(remark=_DONE, body=encode_list(found) if found else b"")

    async def get_all(self, connection: Connection, command: Command) -> Command:
        """With the passwords, whatever is shown to operators: a replica checks signatures, too."""
        ext, accounts = command.ext or {}, self._keeper.accounts
        name = ext.get(ACCESS_KEY)
        if not name:
            # Its certificate was verified, or nobody is asked for anything here.
            return command.reply(body=await asyncio.to_thread(encode_table, accounts))
        nonce = ext.get(NONCE, "")
        if len(nonce) < NONCE_CHARS_MIN:
            raise Refused(
                ResponseCode.INVALID_PARAMETER,
                f"a request for all accounts needs a {NONCE} of {NONCE_CHARS_MIN} characters",
            )
        user = accounts.users.get(name)
        if user is None:
            raise Refused(ResponseCode.NO_PERMISSION, f"User:{name} not found.")
        body = await asyncio.to_thread(lambda: seal(encode_table(accounts), user.password, nonce))
        return command.reply(body=body)

    async def _set_user(
        self, connection: Connection, command: Command, change: Callable[..., Accounts]
    ) -> Command:
        username = decode_fields(UserHeader, command.ext).username
        given = User.decode(command.body)
        is_super = self._identity_of(connection, command).is_super
        await self._keeper.change(
            lambda accounts: change(accounts, username, given, is_super=is_super)
        )
        return command.reply(remark=_DONE)

    def _shows_to(self, connection: Connection, command: Command) -> bool:
        return self._shows_passwords and self._identity_of(connection, command).is_super
