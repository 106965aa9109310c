"""Accounts as RocketMQ 4 has them (ACL 1): 50 to 54. Every broker has a file of its own, so changes go to all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cometmq.admin.accounts.users import send
from cometmq.admin.calls import Calls
from cometmq.admin.fan_out import ByServer
from cometmq.admin.target import ALL_BROKERS, EVERY_SERVER, Target
from cometmq.base.errors import UsageError
from cometmq.model.topic import DataVersion
from cometmq.protocol import fastjson
from cometmq.protocol.bodies.auth import PlainAccess, PlainAccessTable
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.auth import (
    DeleteAclConfigHeader,
    GetAclInfoReply,
    UpdateAclConfigHeader,
    UpdateGlobalWhiteAddrsHeader,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainAccountsVersion:
    """Which state of its account files a broker has; ``files`` are versions by path."""

    cluster: str
    broker_name: str
    address: str
    files: dict[str, DataVersion]


class PlainAccounts:
    """``admin.plain_accounts``. RocketMQ 5 has none of these: ``failed`` has ``RequestCodeNotSupported`` then."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def all(self, target: Target = ALL_BROKERS) -> ByServer[PlainAccessTable]:
        """All accounts and white addresses of each broker (54); with secrets, if the broker shows them."""

        async def ask(address: str) -> PlainAccessTable:
            code = RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG
            return await self._calls.table(address, code, PlainAccessTable)

        return await self._calls.fan_out.each(await self._calls.addresses(target), ask)

    async def put(self, account: PlainAccess, target: Target = EVERY_SERVER) -> ByServer[None]:
        """Create an account, or change the fields of it that are given (50). The secret is needed in both cases."""
        if not account.access_key or not account.secret_key:
            raise UsageError(
                "expected an access_key and a secret_key of at least 7 characters each"
            )
        header = UpdateAclConfigHeader(
            access_key=account.access_key,
            secret_key=account.secret_key,
            white_remote_address=account.white_remote_address,
            admin=account.admin,
            default_topic_perm=account.default_topic_perm,
            default_group_perm=account.default_group_perm,
            topic_perms=_joined(account.topic_perms),
            group_perms=_joined(account.group_perms),
        )
        code = RequestCode.UPDATE_AND_CREATE_ACL_CONFIG
        return await send(self._calls, code, header, b"", target)

    async def delete(self, access_key: str, target: Target = EVERY_SERVER) -> ByServer[None]:
        """Delete an account (51). Brokers that do not have it are in ``failed``."""
        if not access_key:
            raise UsageError("expected the access key of an account, got an empty text")
        header = DeleteAclConfigHeader(access_key=access_key)
        return await send(self._calls, RequestCode.DELETE_ACL_CONFIG, header, b"", target)

    async def versions(self, target: Target = ALL_BROKERS) -> ByServer[PlainAccountsVersion]:
        """Which state of its account files each broker has (52)."""

        async def ask(address: str) -> PlainAccountsVersion:
            reply = await self._calls.ask(address, RequestCode.GET_BROKER_CLUSTER_ACL_INFO)
            told = decode_fields(GetAclInfoReply, reply.ext)
            text = told.all_acl_file_version or "{}"
            return PlainAccountsVersion(
                cluster=told.cluster_name or "",
                broker_name=told.broker_name or "",
                address=told.broker_addr or address,
                files=fastjson.decode(
                    text.encode(), dict[str, DataVersion], what="table of versions"
                ),
            )

        return await self._calls.fan_out.each(await self._calls.addresses(target), ask)

    async def set_white_addresses(
        self, addresses: Sequence[str], *, path: str | None = None, target: Target = EVERY_SERVER
    ) -> ByServer[None]:
        """Replace the addresses from which everybody may do everything (53).

        Args:
            path: of the account file at the broker; by default the main one.
        """
        header = UpdateGlobalWhiteAddrsHeader(
            global_white_addrs=",".join(addresses), acl_file_full_path=path
        )
        code = RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG
        return await send(self._calls, code, header, b"", target)


def _joined(perms: Sequence[str] | None) -> str | None:
    return None if perms is None else ",".join(perms)
