"""One test's view of a cluster that it shares with others."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from cometmq.admin import Admin, Target, new_topic
from cometmq.base.errors import CometError
from cometmq.model.names import check_group, check_topic

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

    async def _create(self, topic: str, queues: int, perm: int) -> None:
        config = new_topic(topic, read_queues=queues, write_queues=queues, perm=perm)
        async with Admin(self.name_servers, timeout=CALL_SECONDS_MAX) as admin:
            made = await admin.topics.create(config, Target(address=self.broker_address))
            for refusal in made.failed.values():
                raise refusal
            deadline = time.monotonic() + KNOWN_SECONDS_MAX
            while topic not in await admin.topics.names():
                if time.monotonic() > deadline:
                    raise TopicNotKnown(
                        f"{self.name_servers} does not know {topic!r} after {KNOWN_SECONDS_MAX:g} s"
                    )
                await asyncio.sleep(POLL_SECONDS)
