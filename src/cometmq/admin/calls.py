"""One request to one server: sent, signed, and its reply checked. All other modules of the library ask through this."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from cometmq.admin.errors import NoSuchTopic
from cometmq.admin.fan_out import FanOut
from cometmq.admin.target import Place, Target, chosen
from cometmq.base.errors import RemoteProtocolError, UsageError
from cometmq.client.aio.bulk.bulk_client import BulkClient
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.model.ids import MASTER_ID
from cometmq.model.message_queue import MessageQueue
from cometmq.model.route import TopicRoute
from cometmq.protocol.bodies.route import ClusterInfo, decode_route
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import Header, encode_fields
from cometmq.protocol.headers.route import GetRouteInfoHeader
from cometmq.protocol.json_body import JsonBody
from cometmq.protocol.reply_errors import BrokerReplyError, RequestCodeNotSupported, error_for

B = TypeVar("B", bound=JsonBody)

_PORTS: Final = {
    "a name server": "port 9876",
    "a broker": "port 10911",
    "a controller": "port 9878",
}
_KINDS: Final = {
    RequestCode.PUT_KV_CONFIG: "a name server",
    RequestCode.GET_KV_CONFIG: "a name server",
    RequestCode.DELETE_KV_CONFIG: "a name server",
    RequestCode.GET_KVLIST_BY_NAMESPACE: "a name server",
    RequestCode.GET_ROUTEINFO_BY_TOPIC: "a name server",
    RequestCode.GET_BROKER_CLUSTER_INFO: "a name server",
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: "a name server",
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: "a name server",
    RequestCode.ADD_WRITE_PERM_OF_BROKER: "a name server",
    RequestCode.DELETE_TOPIC_IN_NAMESRV: "a name server",
    RequestCode.UPDATE_NAMESRV_CONFIG: "a name server",
    RequestCode.GET_NAMESRV_CONFIG: "a name server",
    RequestCode.CONTROLLER_ELECT_MASTER: "a controller",
    RequestCode.CONTROLLER_GET_METADATA_INFO: "a controller",
    RequestCode.CONTROLLER_GET_SYNC_STATE_DATA: "a controller",
    RequestCode.UPDATE_CONTROLLER_CONFIG: "a controller",
    RequestCode.GET_CONTROLLER_CONFIG: "a controller",
    RequestCode.CLEAN_BROKER_DATA: "a controller",
}
"""Who answers a request, if not a broker."""
_OF_ACCOUNTS: Final = {
    **{code: "authenticationEnabled" for code in RequestCode if 3001 <= code <= 3010},
    **{code: "aclEnable" for code in RequestCode if 50 <= code <= 54},
}
"""The setting that brings them."""


class Calls:
    """
    Args:
        instance: brings connections, name servers, account and timeout.
        controllers: addresses, asked in this order until one answers.
    """

    def __init__(
        self, instance: ClientInstance, fan_out: FanOut, controllers: Sequence[str]
    ) -> None:
        self.instance = instance
        self.queues = BulkClient(instance.config, instance=instance)
        """Questions about many queues at once."""
        self.fan_out = fan_out
        self.controllers = tuple(controllers)

    async def ask(
        self,
        address: str,
        code: RequestCode,
        header: Header | None = None,
        body: bytes = b"",
        *,
        timeout: float | None = None,
        accepted: Sequence[int] = (ResponseCode.SUCCESS,),
    ) -> Command:
        """The reply of a server.

        Raises:
            BrokerReplyError: with a code that is not ``accepted``.
            RemotingError: it does not answer.
        """
        ext = encode_fields(header) if header is not None else None
        request = Command(code, ext, body=body)
        reply = await self.instance.call(
            address, request, timeout or self.instance.config.call_seconds
        )
        if reply.code not in accepted:
            raise _refusal(reply, address, code)
        return reply

    async def table(
        self, address: str, code: RequestCode, kind: type[B], header: Header | None = None
    ) -> B:
        """The body of a server's reply. Raises as ``ask`` does, and RemoteProtocolError for a body that is none."""
        reply = await self.ask(address, code, header)
        try:
            return kind.decode(reply.body)
        except RemoteProtocolError as error:
            raise RemoteProtocolError(f"{address} answered {code.name}: {error}") from None

    async def ask_name_server(
        self,
        code: RequestCode,
        header: Header | None = None,
        *,
        accepted: Sequence[int] = (ResponseCode.SUCCESS,),
    ) -> Command:
        """The reply of the first name server that answers. Raises NoNameServer, BrokerReplyError."""
        ext = encode_fields(header) if header is not None else None
        reply, address = await self.instance.ask_name_server(Command(code, ext))
        if reply.code not in accepted:
            raise _refusal(reply, address, code)
        return reply

    @property
    def name_servers(self) -> list[str]:
        """All of them, the one in use first."""
        return self.instance.name_servers

    async def cluster_info(self) -> ClusterInfo:
        """Clusters and brokers as a name server knows them."""
        reply = await self.ask_name_server(RequestCode.GET_BROKER_CLUSTER_INFO)
        return ClusterInfo.decode(reply.body)

    async def places(self, target: Target, *, is_change: bool = False) -> list[Place]:
        """The brokers that a target means. Raises NoSuchName, UsageError, NoNameServer."""
        return chosen(target, await self.cluster_info(), is_change=is_change)

    async def addresses(self, target: Target, *, is_change: bool = False) -> list[str]:
        """As ``places``, but an address that is given is not looked up, and needs no name server."""
        if target.address:
            return [target.address]
        return [place.address for place in await self.places(target, is_change=is_change)]

    async def route(self, topic: str) -> TopicRoute:
        """Where a topic is, as a name server says now.

        Raises:
            NoSuchTopic: the name server does not know the topic.
            NoNameServer: none answers.
        """
        if not topic:
            raise UsageError("expected the name of a topic, got an empty text")
        header = GetRouteInfoHeader(topic=topic)
        request = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, encode_fields(header))
        reply, address = await self.instance.ask_name_server(request)
        if reply.code == ResponseCode.TOPIC_NOT_EXIST:
            raise NoSuchTopic(f"name server {address} does not know topic {topic!r}")
        if reply.code != ResponseCode.SUCCESS:
            raise _refusal(reply, address, RequestCode.GET_ROUTEINFO_BY_TOPIC)
        return decode_route(reply.body)

    async def queues_of(self, topic: str) -> list[MessageQueue]:
        """The readable queues of a topic. Raises as ``route``."""
        await self.route(topic)
        return await self.queues.queues(topic)

    async def masters_of(self, topic: str) -> dict[str, str]:
        """The addresses of a topic's brokers by name: masters, or who stands in for one. Raises as ``route``."""
        return masters(await self.route(topic))


def masters(route: TopicRoute) -> dict[str, str]:
    """By broker name: the address of the master, or that of the lowest id while there is none."""
    return {
        data.broker_name: data.broker_addrs.get(MASTER_ID)
        or data.broker_addrs[min(data.broker_addrs)]
        for data in sorted(route.broker_datas, key=lambda data: data.broker_name)
        if data.broker_addrs
    }


def _refusal(reply: Command, address: str, code: RequestCode) -> BrokerReplyError:
    """The error for a reply. Servers of all kinds look alike from outside, and a wrong port is a common slip."""
    error = error_for(reply, address)
    if not isinstance(error, RequestCodeNotSupported):
        return error
    if code in _OF_ACCOUNTS:
        hint = f"accounts are not turned on there ({_OF_ACCOUNTS[code]})"
    else:
        kind = _KINDS.get(code, "a broker")
        hint = f"is it {kind} ({_PORTS[kind]} by default), and new enough?"
    return RequestCodeNotSupported(reply.code, f"it does not know {code.name}; {hint}", address)
