"""From topics to the queues that a producer may send to; known queues are returned without waiting."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Final

from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.core.send.prepare import check_sendable
from cometmq.client.core.send.topic_queues import TopicQueues
from cometmq.client.errors import NoRoute
from cometmq.model.names import REPLY_SUFFIX

LOOK_SECONDS: Final = 1.0
"""How long queues are used before the instance is asked again, which usually has the route cached."""

NEW_TOPIC_SECONDS: Final = 30.0
"""How long an unknown topic is sent to all brokers that create topics, so that each gets a first message."""

_START_BELOW: Final = 1 << 16


class PublishRoutes:
    """The topics of one producer."""

    def __init__(
        self, instance: ClientInstance, *, create_topic_key: str, create_queue_count: int
    ) -> None:
        self._instance = instance
        self._monotonic = instance.clock.monotonic
        self._create_topic_key = create_topic_key
        self._create_queue_count = create_queue_count
        self._topics: dict[str, TopicQueues] = {}

    def wire_topics(self) -> Collection[str]:
        """The topics sent to, and the one from which topics are created: its brokers know the producer beforehand."""
        return [self._create_topic_key, *(topic.wire_topic for topic in self._topics.values())]

    def known(self, topic: str, now: float) -> TopicQueues | None:
        """The topic's queues, if they are known and valid."""
        known = self._topics.get(topic)
        return known if known is not None and now < known.believed_until else None

    def doubted(self, topic: str) -> TopicQueues | None:
        """The topic's queues as they were last, if it was ever found."""
        return self._topics.get(topic)

    async def find(self, topic: str) -> TopicQueues:
        """The topic's queues, at least one.

        Raises:
            UsageError: nothing may be sent to the topic.
            NoRoute, NoNameServer: no queue can be found.
        """
        now = self._monotonic()
        known = self._topics.get(topic)
        if known is None:
            check_sendable(topic)
            known = TopicQueues(topic, self._wire_topic(topic), random.randrange(_START_BELOW))
        elif now < known.believed_until:
            return known
        elif known.queues and known.believed_until > 0:
            # Until there is an answer, concurrent sends use the known queues.
            known.believed_until = now + LOOK_SECONDS
        try:
            route = await self._instance.route(known.wire_topic)
            known.take(route, self._monotonic() + LOOK_SECONDS, None)
        except NoRoute as unknown:
            try:
                route = await self._instance.route(self._create_topic_key)
            except NoRoute:
                raise unknown from None
            known.take(route, self._monotonic() + NEW_TOPIC_SECONDS, self._create_queue_count)
        if not known.queues:
            known.doubt()
            raise NoRoute(f"topic {topic!r} has no writable queue on any master")
        self._topics[topic] = known
        return known

    def doubt(self, topic: TopicQueues) -> None:
        """A broker failed or refused: ask a name server before the next use."""
        topic.doubt()
        self._instance.forget_route(topic.wire_topic)

    def _wire_topic(self, topic: str) -> str:
        # Replies go through a topic of the cluster, which has no namespace.
        return topic if topic.endswith(f"_{REPLY_SUFFIX}") else self._instance.wrap_topic(topic)
