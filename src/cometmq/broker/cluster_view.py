"""What the name servers know of the rest of the cluster, for the few things a broker asks them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from cometmq.base.errors import CometError
from cometmq.broker.config.live_config import LiveConfig
from cometmq.model.flags import is_readable
from cometmq.model.ids import MASTER_ID
from cometmq.model.message_queue import MessageQueue
from cometmq.model.topic import TopicConfig
from cometmq.protocol.bodies.route import ClusterInfo, decode_route
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.admin import CreateTopicHeader
from cometmq.protocol.reply_errors import error_for
from cometmq.remoting.client import RemotingClient

log = logging.getLogger("cometmq.broker")

CALL_SECONDS_MAX: Final = 3.0
SPREADS_MAX: Final = 256


class ClusterView:
    def __init__(
        self,
        *,
        client: RemotingClient,
        name_servers: Iterable[str],
        live: LiveConfig,
        address: str,
    ) -> None:
        self._client = client
        self._name_servers = list(name_servers)
        self._live = live
        self._address = address
        self._spreads: set[asyncio.Task[None]] = set()

    async def readable_queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that consumers read, on all brokers; empty when no name server knows the topic."""
        request = Command(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, ext={"topic": topic})
        reply = await self._ask(request)
        if reply is None or reply.code != ResponseCode.SUCCESS:
            return []
        return [
            MessageQueue(topic=topic, broker_name=data.broker_name, queue_id=queue_id)
            for data in decode_route(reply.body).queue_datas
            if is_readable(data.perm)
            for queue_id in range(data.read_queue_nums)
        ]

    async def other_masters(self) -> list[str]:
        """Addresses of the other masters of this broker's cluster."""
        reply = await self._ask(Command(code=RequestCode.GET_BROKER_CLUSTER_INFO))
        if reply is None or reply.code != ResponseCode.SUCCESS:
            return []
        info = ClusterInfo.decode(reply.body)
        names = info.cluster_addr_table.get(self._live.current.identity.cluster_name, [])
        found = [
            info.broker_addr_table[name].broker_addrs.get(MASTER_ID)
            for name in names
            if name in info.broker_addr_table
        ]
        return [address for address in found if address and address != self._address]

    def spread(self, config: TopicConfig) -> None:
        """Create an auto-created topic on the other masters, too, if so set: in the background, as well as it goes."""
        if not self._live.current.topics.auto_create_on_all_masters:
            return
        if len(self._spreads) >= SPREADS_MAX:
            log.warning("topic not spread topic=%s reason=too many at once", config.topic_name)
            return
        task = asyncio.get_running_loop().create_task(self._spread(config))
        self._spreads.add(task)
        task.add_done_callback(self._spreads.discard)

    async def stop(self) -> None:
        for task in self._spreads:
            task.cancel()
        await asyncio.gather(*self._spreads, return_exceptions=True)

    async def _spread(self, config: TopicConfig) -> None:
        try:
            masters = await self.other_masters()
        except CometError as error:
            log.warning("topic not spread topic=%s reason=%s", config.topic_name, error)
            return
        await asyncio.gather(*(self._create_on(address, config) for address in masters))

    async def _create_on(self, address: str, config: TopicConfig) -> None:
        header = CreateTopicHeader(
            topic=config.topic_name,
            default_topic=config.topic_name,
            read_queue_nums=config.read_queue_nums,
            write_queue_nums=config.write_queue_nums,
            perm=config.perm,
            topic_filter_type=config.topic_filter_type,
            topic_sys_flag=config.topic_sys_flag,
            order=config.order,
        )
        request = Command(code=RequestCode.UPDATE_AND_CREATE_TOPIC, ext=encode_fields(header))
        try:
            reply = await self._client.call(address, request, CALL_SECONDS_MAX)
            if reply.code != ResponseCode.SUCCESS:
                raise error_for(reply, address)
        except CometError as error:
            log.warning(
                "topic not spread topic=%s broker=%s reason=%s", config.topic_name, address, error
            )
        else:
            log.info("topic spread topic=%s broker=%s", config.topic_name, address)

    async def _ask(self, request: Command) -> Command | None:
        """The first answer of any name server."""
        for name_server in self._name_servers:
            try:
                return await self._client.call(name_server, request, CALL_SECONDS_MAX)
            except CometError as error:
                log.debug("no answer name_server=%s reason=%s", name_server, error)
        return None
