"""The queues to which a producer sends one topic, cached as long as the route stays the same. No I/O."""

from __future__ import annotations

from cometmq.client.core.send.publish_queues import publish_queues
from cometmq.client.core.send.queue_selector import RoundRobin
from cometmq.model.message_queue import MessageQueue
from cometmq.model.route import TopicRoute


class TopicQueues:
    """``topic`` is the user's name, ``wire_topic`` the one with its namespace."""

    __slots__ = ("believed_until", "queues", "robin", "route", "topic", "wire_topic")

    def __init__(self, topic: str, wire_topic: str, start: int) -> None:
        self.topic = topic
        self.wire_topic = wire_topic
        self.route: TopicRoute | None = None
        self.queues: list[MessageQueue] = []
        self.robin = RoundRobin(start)
        self.believed_until = float("-inf")
        """When to refresh the route; a monotonic time."""

    def take(self, route: TopicRoute, believed_until: float, queue_count_max: int | None) -> None:
        """Use a route.

        Args:
            queue_count_max: set if this is the route of the topic from which new ones are created: the number of
                queues per broker that will be created.
        """
        self.believed_until = believed_until
        if route is not self.route:
            self.route = route
            self.queues = publish_queues(self.topic, route, queue_count_max)

    def doubt(self) -> None:
        """Refresh the route before the next use."""
        self.believed_until = float("-inf")

    def has_other_broker(self, broker_name: str) -> bool:
        return any(queue.broker_name != broker_name for queue in self.queues)
