"""Name servers: their settings, write permission of brokers, and their key-value store."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from cometmq.admin.calls import Calls
from cometmq.admin.fan_out import ByServer
from cometmq.admin.servers.settings import check_settings, read_settings, write_settings
from cometmq.admin.target import Place, places
from cometmq.protocol.bodies.kv import KVTable
from cometmq.protocol.bodies.route import ClusterInfo
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.namesrv import (
    AddWritePermHeader,
    AddWritePermReply,
    DeleteKVConfigHeader,
    GetKVConfigHeader,
    GetKVConfigReply,
    GetKVListHeader,
    PutKVConfigHeader,
    WipeWritePermHeader,
    WipeWritePermReply,
)


class NameServers:
    """``admin.name_servers``. They do not talk to each other, so all of them are told of a change."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def addresses(self) -> list[str]:
        return sorted(self._calls.name_servers)

    async def settings(self) -> ByServer[dict[str, str]]:
        """The settings that name servers run with (319)."""
        ask = partial(read_settings, self._calls, RequestCode.GET_NAMESRV_CONFIG)
        return await self._calls.fan_out.each(self.addresses, ask)

    async def brokers(self) -> ByServer[list[Place]]:
        """The brokers that each name server knows (106). They differ while one comes or goes, and if one is cut off."""

        async def ask(address: str) -> list[Place]:
            code = RequestCode.GET_BROKER_CLUSTER_INFO
            return places(await self._calls.table(address, code, ClusterInfo))

        return await self._calls.fan_out.each(self.addresses, ask)

    async def update_settings(self, values: Mapping[str, str]) -> ByServer[str]:
        """Change settings (318). The answers are remarks."""
        check_settings(values)
        ask = partial(write_settings, self._calls, RequestCode.UPDATE_NAMESRV_CONFIG, values)
        return await self._calls.fan_out.each(self.addresses, ask)

    async def wipe_write_perm(self, broker_name: str) -> ByServer[int]:
        """Clients send nothing more to a broker (205), as before a stop. The answers count its topics; 0: not known."""

        async def ask(address: str) -> int:
            header = WipeWritePermHeader(broker_name=broker_name)
            reply = await self._calls.ask(address, RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)
            return decode_fields(WipeWritePermReply, reply.ext).wipe_topic_count

        return await self._calls.fan_out.each(self.addresses, ask)

    async def add_write_perm(self, broker_name: str) -> ByServer[int]:
        """Clients send to a broker again (327). The answers count its topics; 0: not known."""

        async def ask(address: str) -> int:
            header = AddWritePermHeader(broker_name=broker_name)
            reply = await self._calls.ask(address, RequestCode.ADD_WRITE_PERM_OF_BROKER, header)
            return decode_fields(AddWritePermReply, reply.ext).add_topic_count

        return await self._calls.fan_out.each(self.addresses, ask)


class KeyValues:
    """``admin.kv``: texts that name servers keep, by namespace and key."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def get(self, namespace: str, key: str) -> str | None:
        """A value, as the first name server that answers has it; None if there is none (101)."""
        reply = await self._calls.ask_name_server(
            RequestCode.GET_KV_CONFIG,
            GetKVConfigHeader(namespace=namespace, key=key),
            accepted=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
        )
        if reply.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return decode_fields(GetKVConfigReply, reply.ext).value

    async def of_namespace(self, namespace: str) -> dict[str, str]:
        """All values of a namespace, as the first name server that answers has them (219)."""
        reply = await self._calls.ask_name_server(
            RequestCode.GET_KVLIST_BY_NAMESPACE,
            GetKVListHeader(namespace=namespace),
            accepted=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
        )
        if reply.code == ResponseCode.QUERY_NOT_FOUND:
            return {}
        return KVTable.decode(reply.body).table

    async def put(self, namespace: str, key: str, value: str) -> ByServer[None]:
        """Store a value at all name servers (100)."""

        async def ask(address: str) -> None:
            header = PutKVConfigHeader(namespace=namespace, key=key, value=value)
            await self._calls.ask(address, RequestCode.PUT_KV_CONFIG, header)

        return await self._calls.fan_out.each(self._calls.name_servers, ask)

    async def delete(self, namespace: str, key: str) -> ByServer[None]:
        """Remove a value at all name servers; one that is not there is no mistake (102)."""

        async def ask(address: str) -> None:
            header = DeleteKVConfigHeader(namespace=namespace, key=key)
            await self._calls.ask(address, RequestCode.DELETE_KV_CONFIG, header)

        return await self._calls.fan_out.each(self._calls.name_servers, ask)
