"""Requests about the accounts of RocketMQ 4: 50 to 54."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cometmq.access.door.account_requests import IdentityOf
from cometmq.access.identity import Identity
from cometmq.access.plain.plain_account import PlainAccount
from cometmq.access.plain.plain_changes import (
    updated_account,
    with_white_addresses,
    without_account,
)
from cometmq.base.errors import ConfigError, DiskFull
from cometmq.base.ports import Clock
from cometmq.broker.access.plain_keeper import Edit, PlainKeeper
from cometmq.broker.config.live_config import LiveConfig
from cometmq.model.topic import DataVersion
from cometmq.protocol import fastjson
from cometmq.protocol.bodies.topic import encode_data_version
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.auth import (
    DeleteAclConfigHeader,
    GetAclInfoReply,
    UpdateAclConfigHeader,
    UpdateGlobalWhiteAddrsHeader,
)
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

# RocketMQ gives these numbers to other replies, too; ``ResponseCode`` has those.
UPDATE_FAILED: Final = 209
DELETE_FAILED: Final = 210
WHITE_ADDRESSES_FAILED: Final = 211

_SHOWN: Final = (
    *("accessKey", "whiteRemoteAddress", "defaultTopicPerm", "defaultGroupPerm"),
    *("topicPerms", "groupPerms"),
)


class PlainRequests:
    """
    Args:
        address: of the broker, as clients know it.
        shows_secrets: whether administrators get them.
    """

    def __init__(
        self,
        keeper: PlainKeeper,
        live: LiveConfig,
        clock: Clock,
        identity_of: IdentityOf,
        *,
        address: str,
        shows_secrets: bool,
    ) -> None:
        self._keeper = keeper
        self._live = live
        self._clock = clock
        self._identity_of = identity_of
        self._address = address
        self._shows_secrets = shows_secrets

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, self.update)
        dispatcher.add(RequestCode.DELETE_ACL_CONFIG, self.delete)
        dispatcher.add(RequestCode.GET_BROKER_CLUSTER_ACL_INFO, self.versions)
        dispatcher.add(RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, self.set_white_addresses)
        dispatcher.add(RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG, self.get_all)

    async def update(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(UpdateAclConfigHeader, command.ext)

        def change(content: Mapping[str, Any]) -> Mapping[str, Any]:
            return updated_account(content, header, self._clock.wall_ms())

        path = self._keeper.path_of(header.access_key)
        await self._edit(str(path) if path else None, change, UPDATE_FAILED)
        return command.reply()

    async def delete(self, connection: Connection, command: Command) -> Command:
        key = decode_fields(DeleteAclConfigHeader, command.ext).access_key
        path = self._keeper.path_of(key)
        if path is None:
            raise Refused(
                DELETE_FAILED,
                f"The accesskey[{key}] corresponding to accessConfig has been deleted failed.",
            )

        def change(content: Mapping[str, Any]) -> Mapping[str, Any]:
            return without_account(content, key, self._clock.wall_ms())

        await self._edit(str(path), change, DELETE_FAILED)
        return command.reply()

    def versions(self, connection: Connection, command: Command) -> Command:
        table, identity = self._keeper.table, self._live.current.identity
        default = table.versions.get(str(self._keeper.files.default_path), DataVersion())
        reply = GetAclInfoReply(
            version=encode_data_version(default).decode(),
            all_acl_file_version=fastjson.dumps(dict(table.versions)).decode(),
            broker_name=identity.broker_name,
            broker_addr=self._address,
            cluster_name=identity.cluster_name,
        )
        return command.reply(ext=encode_fields(reply))

    async def set_white_addresses(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(UpdateGlobalWhiteAddrsHeader, command.ext)
        addresses = [part.strip() for part in header.global_white_addrs.split(",") if part.strip()]

        def change(content: Mapping[str, Any]) -> Mapping[str, Any]:
            return with_white_addresses(content, addresses, self._clock.wall_ms())

        # RocketMQ says no more than this.
        said = f"The globalWhiteAddresses[{header.global_white_addrs}] has been updated failed. "
        await self._edit(header.acl_file_full_path, change, WHITE_ADDRESSES_FAILED, said)
        return command.reply()

    def get_all(self, connection: Connection, command: Command) -> Command:
        identity: Identity = self._identity_of(connection, command)
        with_secrets = self._shows_secrets and identity.is_super
        table = self._keeper.table
        body = {
            "globalWhiteAddrs": list(table.white_texts),
            "plainAccessConfigs": [
                _shown(account, with_secret=with_secrets) for account in table.accounts.values()
            ],
        }
        return command.reply(body=fastjson.dumps(body))

    async def _edit(self, path: str | None, change: Edit, failed: int, said: str = "") -> None:
        try:
            await self._keeper.edit(path, change)
        except (ConfigError, DiskFull, OSError) as error:
            raise Refused(failed, f"{said}{error}") from None


def _shown(account: PlainAccount, *, with_secret: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        key: account.given[key] for key in _SHOWN if account.given.get(key) is not None
    }
    shown["admin"] = account.is_admin
    if with_secret:
        shown["secretKey"] = account.secret_key
    return shown
