"""The queues a producer sends one topic to, kept as long as the route stays. No I/O."""

from __future__ import annotations

from cometmq.client.core.publish_queues import publish_queues
from cometmq.client.core.queue_selector import RoundRobin
from cometmq.model.message_queue import MessageQueue
from cometmq.model.route import TopicRoute


class TopicQueues:
    """``topic`` is the user's name of it, ``wire_topic`` the one with its namespace."""

    __slots__ = ("believed_until", "queues", "robin", "route", "topic", "wire_topic")

    def __init__(self, topic: str, wire_topic: str, start: int) -> None:
        self.topic = topic
        self.wire_topic = wire_topic
        self.route: TopicRoute | None = None
        self.queues: list[MessageQueue] = []
        self.robin = RoundRobin(start)
        self.believed_until = float("-inf")
        """When to look for another route; a monotonic time."""

    def take(self, route: TopicRoute, believed_until: float, queue_count_max: int | None) -> None:
        """Use a route.

        Args:
            queue_count_max: this is the route of the topic that new ones are made from, and so many queues per
                broker will be made.
        """
        self.believed_until = believed_until
        if route is not self.route:
            self.route = route
            self.queues = publish_queues(self.topic, route, queue_count_max)

    def doubt(self) -> None:
        """Look for another route before the next use."""
        self.believed_until = float("-inf")

    def has_other_broker(self, broker_name: str) -> bool:
        return any(queue.broker_name != broker_name for queue in self.queues)
