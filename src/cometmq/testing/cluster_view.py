"""One test's view of a cluster that it shares with others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from cometmq.base.errors import CometError
from cometmq.model.names import check_group, check_topic
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.admin import CreateTopicHeader
from cometmq.protocol.reply_errors import error_for
from cometmq.remoting.client import RemotingClient

CALL_SECONDS_MAX: Final = 5.0
KNOWN_SECONDS_MAX: Final = 10.0
POLL_SECONDS: Final = 0.005


class TopicNotKnown(CometError):
    """The broker created a topic, but the name server did not learn of it in time."""


class ClusterView:
    """The methods work in plain tests and in tests that run an event loop.

    Attributes:
        name_servers: the address for clients.
        broker_address: ``host:port`` of the broker.
    """

    def __init__(self, name_servers: str, broker_address: str, *, suffix: str) -> None:
        self.name_servers = name_servers
        self.broker_address = broker_address
        self._suffix = suffix

    def __repr__(self) -> str:
        return f"<ClusterView name_servers={self.name_servers} broker={self.broker_address}>"

    def topic(self, name: str = "topic") -> str:
        """A topic name unique to this test, the same for the same ``name``; its first message creates it."""
        topic = f"{name}-{self._suffix}"
        check_topic(topic)
        return topic

    def group(self, name: str = "group") -> str:
        """A group name unique to this test, the same for the same ``name``."""
        group = f"{name}-{self._suffix}"
        check_group(group)
        return group

    def create_topic(self, name: str = "topic", *, queues: int = 4, perm: int = 6) -> str:
        """Create ``topic(name)`` and return its name as soon as clients can find it.

        Args:
            perm: 6 read and write, 4 read only, 2 write only.

        Raises:
            BrokerReplyError: the broker refused it.
            TopicNotKnown: the name server did not learn of it in time.
        """
        topic = self.topic(name)
        # In a separate thread: this one may run the test's event loop.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, self._create(topic, queues, perm)).result()
        return topic

    def _create(self, topic: str, queues: int, perm: int) -> Coroutine[Any, Any, None]:
        header = CreateTopicHeader(
            topic=topic,
            default_topic="TBW102",
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=perm,
            topic_filter_type="SINGLE_TAG",
            topic_sys_flag=0,
            order=False,
        )
        return _create_and_wait(self.name_servers, self.broker_address, header)


async def _create_and_wait(name_server: str, broker: str, header: CreateTopicHeader) -> None:
    client = RemotingClient()
    try:
        create = Command(RequestCode.UPDATE_AND_CREATE_TOPIC, encode_fields(header))
        reply = await client.call(broker, create, CALL_SECONDS_MAX)
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, broker)
        deadline = time.monotonic() + KNOWN_SECONDS_MAX
        while True:
            ask = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": header.topic})
            known = await client.call(name_server, ask, CALL_SECONDS_MAX)
            if known.code == ResponseCode.SUCCESS:
                return
            if time.monotonic() > deadline:
                raise TopicNotKnown(
                    f"{name_server} does not know {header.topic!r} after {KNOWN_SECONDS_MAX:g} s"
                )
            await asyncio.sleep(POLL_SECONDS)
    finally:
        await client.close()
