"""The blocking face of ``cometmq.admin.topics``. Written by tools/admin_sync.py; do not edit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cometmq.admin.fan_out import ByServer, Listing
from cometmq.admin.sync.room import Room
from cometmq.admin.target import ALL_BROKERS, Target
from cometmq.admin.topics.topic_rows import TopicGroups, TopicRow, TopicStatus
from cometmq.admin.topics.topics import Topics as AsyncTopics
from cometmq.admin.topics.traffic import TopicTraffic
from cometmq.model.route import TopicRoute
from cometmq.model.topic import TopicConfig


class Topics(Room[AsyncTopics]):
    """``admin.topics``. Names are those on the wire: with retry topics, dead letters and namespaces."""

    def names(self, cluster: str | None = None) -> list[str]:
        """The names of all topics that a name server knows, or of those of one cluster (206, 224)."""
        return self._run(self._aio.names, cluster)

    def definitions(self, target: Target = ALL_BROKERS) -> ByServer[dict[str, TopicConfig]]:
        """All topics by name, as each broker defines them (21)."""
        return self._run(self._aio.definitions, target)

    def rows(self, target: Target = ALL_BROKERS) -> Listing[TopicRow]:
        """All topics with their definitions by broker: one request per broker."""
        return self._run(self._aio.rows, target)

    def get(self, topic: str) -> TopicRow:
        """A topic as its brokers define it.

        Raises:
            NoRoute: no name server knows it.
            PartialFailure: a broker did not answer.
        """
        return self._run(self._aio.get, topic)

    def route(self, topic: str) -> TopicRoute:
        """Where a topic is, as a name server says (105).

        Raises:
            NoRoute: it does not know the topic.
        """
        return self._run(self._aio.route, topic)

    def clusters(self, topic: str) -> list[str]:
        """The clusters that have a topic. Raises NoRoute."""
        return self._run(self._aio.clusters, topic)

    def status(self, topic: str) -> TopicStatus:
        """Bounds of a topic's queues, sorted by broker and number (202).

        Raises:
            NoRoute: no name server knows it.
        """
        return self._run(self._aio.status, topic)

    def groups(self, topic: str) -> Listing[str]:
        """The groups that consume a topic: those online, and those with positions in it (300). Raises NoRoute."""
        return self._run(self._aio.groups, topic)

    def all_groups(self, target: Target = ALL_BROKERS) -> Listing[TopicGroups]:
        """The groups of all topics but retry topics and dead letters: one request per topic and broker (300)."""
        return self._run(self._aio.all_groups, target)

    def traffic(
        self, topics: Iterable[str] = (), target: Target = ALL_BROKERS
    ) -> Listing[TopicTraffic]:
        """Rates of topics, and of their groups: of those named, or of all but retry topics and dead letters.

        It takes two requests per broker (21, 43), and one for each topic and each group of a topic there (315).
        """
        return self._run(self._aio.traffic, topics, target)

    def create(self, config: TopicConfig, target: Target = ALL_BROKERS) -> ByServer[None]:
        """Define a topic at each broker, or change its definition (17).

        Raises:
            UsageError: the name is none, or the target may mean one of several clusters.
        """
        return self._run(self._aio.create, config, target)

    def create_many(
        self, configs: Sequence[TopicConfig], target: Target = ALL_BROKERS
    ) -> ByServer[None]:
        """Define several topics at each broker: in one request (18), or one by one where the broker knows no 18."""
        return self._run(self._aio.create_many, configs, target)

    def set_perm(
        self, topic: str, perm: int, target: Target = ALL_BROKERS
    ) -> ByServer[TopicConfig]:
        """Change who may use a topic, and nothing else of it: 6 read and write, 4 read, 2 write.

        The answers are the definitions as they were before.

        Raises:
            NoRoute: no name server knows the topic.
        """
        return self._run(self._aio.set_perm, topic, perm, target)

    def delete(self, topic: str, cluster: str | None = None) -> ByServer[None]:
        """Delete a topic with all its messages: at every broker of a cluster (215), then at the name servers (216).

        Name servers forget it only if all brokers did, because a broker that still has it would tell of it again.

        Args:
            cluster: needed if there are several.

        Raises:
            NoRoute: no name server knows the topic.
            NoSuchName: the cluster is not there, or does not have the topic.
        """
        return self._run(self._aio.delete, topic, cluster)
