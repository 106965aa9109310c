"""From topics to the queues a producer may send to; what is known is handed out without waiting."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Final

from cometmq.client.aio.instance import ClientInstance
from cometmq.client.core.prepare import check_sendable
from cometmq.client.core.topic_queues import TopicQueues
from cometmq.client.errors import NoRoute
from cometmq.model.names import REPLY_SUFFIX

LOOK_SECONDS: Final = 1.0
"""How long queues are used before the instance is asked again, which mostly has the route at hand."""

NEW_TOPIC_SECONDS: Final = 30.0
"""How long an unknown topic is sent to the brokers that create it, so that each of them gets a first message."""

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
        """Those sent to, and the one new topics are made from: its brokers know the producer before it sends."""
        return [self._create_topic_key, *(topic.wire_topic for topic in self._topics.values())]

    def known(self, topic: str, now: float) -> TopicQueues | None:
        """The topic's queues, if they need not be looked for."""
        known = self._topics.get(topic)
        return known if known is not None and now < known.believed_until else None

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
            # Until there is an answer, sends at the same time go on with what is known.
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
        # Replies go through a topic of the cluster, which belongs to no namespace.
        return topic if topic.endswith(f"_{REPLY_SUFFIX}") else self._instance.wrap_topic(topic)
