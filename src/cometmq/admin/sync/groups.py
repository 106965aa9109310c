"""The blocking face of ``cometmq.admin.groups``. Written by tools/admin_sync.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cometmq.admin.fan_out import ByServer, Listing
from cometmq.admin.groups.connections import Connections as AsyncConnections
from cometmq.admin.groups.group_rows import GroupProgress, GroupRow, GroupSummary
from cometmq.admin.groups.groups import Groups as AsyncGroups
from cometmq.admin.groups.offsets import Offsets as AsyncOffsets
from cometmq.admin.groups.offsets import ResetResult
from cometmq.admin.groups.reset_plan import OffsetMove, ResetPoint
from cometmq.admin.sync.room import Room
from cometmq.admin.target import ALL_BROKERS, Target
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.subscription import SubscriptionData
from cometmq.protocol.bodies.connection import ConsumerConnection, ProducerConnection, ProducerTable
from cometmq.protocol.bodies.running import ConsumerRunningInfo
from cometmq.protocol.bodies.stats import ConsumeTimeSpan


class Groups(Room[AsyncGroups]):
    """``admin.groups``"""

    def names(self, target: Target = ALL_BROKERS, *, with_system: bool = False) -> Listing[str]:
        """The names of all groups that a broker knows; those that RocketMQ keeps for itself only if asked for."""
        return self._run(self._aio.names, target, with_system=with_system)

    def check_known(self, group: str, target: Target = ALL_BROKERS) -> None:
        """Nothing, if a broker defines a group, or one does not answer and may. Raises NoSuchName."""
        return self._run(self._aio.check_known, group, target)

    def definitions(
        self, target: Target = ALL_BROKERS
    ) -> ByServer[dict[str, SubscriptionGroupConfig]]:
        """All groups by name, as each broker defines them (201)."""
        return self._run(self._aio.definitions, target)

    def rows(self, target: Target = ALL_BROKERS) -> Listing[GroupRow]:
        """All groups with their definitions by broker: one request per broker."""
        return self._run(self._aio.rows, target)

    def create(
        self, config: SubscriptionGroupConfig, target: Target = ALL_BROKERS
    ) -> ByServer[None]:
        """Define a group at each broker, or change its definition (200).

        Raises:
            UsageError: the name is none, or the target may mean one of several clusters.
        """
        return self._run(self._aio.create, config, target)

    def create_many(
        self, configs: Sequence[SubscriptionGroupConfig], target: Target = ALL_BROKERS
    ) -> ByServer[None]:
        """Define several groups at each broker: in one request (225), or one by one where the broker knows no 225."""
        return self._run(self._aio.create_many, configs, target)

    def delete(
        self,
        group: str,
        target: Target = ALL_BROKERS,
        *,
        remove_offsets: bool = False,
        remove_topics: bool = True,
    ) -> ByServer[None]:
        """Delete a group's definition at each broker (207).

        Args:
            remove_offsets: its positions, too; else a group of the same name goes on where this one stopped.
            remove_topics: its retry topic and dead letters, too (215, 216). Not with the address of a single broker.
        """
        return self._run(
            self._aio.delete,
            group,
            target,
            remove_offsets=remove_offsets,
            remove_topics=remove_topics,
        )

    def set_consume_mode(
        self,
        group: str,
        topic: str,
        mode: str,
        *,
        pop_share_queues: int = 0,
        target: Target = ALL_BROKERS,
    ) -> ByServer[None]:
        """Have the members of a group pull or pop a topic (401), if brokers share out its queues.

        Args:
            mode: PULL or POP.
            pop_share_queues: with POP, how many other members get each queue, too.

        Raises:
            UsageError: another mode, or a name that is none.
        """
        return self._run(
            self._aio.set_consume_mode,
            group,
            topic,
            mode,
            pop_share_queues=pop_share_queues,
            target=target,
        )

    def is_readable(self, group: str, topic: str, target: Target = ALL_BROKERS) -> ByServer[bool]:
        """Whether each broker lets a group read a topic (353)."""
        return self._run(self._aio.is_readable, group, topic, target)

    def set_readable(
        self, group: str, topic: str, readable: bool, target: Target = ALL_BROKERS
    ) -> ByServer[bool]:
        """Let a group read a topic, or forbid it (353). The answers are what counts from now on."""
        return self._run(self._aio.set_readable, group, topic, readable, target)

    def topics(self, group: str, target: Target = ALL_BROKERS) -> Listing[str]:
        """The topics in which a group has positions (343; RocketMQ 4 answers 208 instead)."""
        return self._run(self._aio.topics, group, target)

    def progress(self, group: str, topics: Sequence[str] = ()) -> GroupProgress:
        """How far a group is in all its topics, or in some (208).

        The brokers of its retry topic are asked; all masters if it has none.

        Raises:
            NoSuchName: no broker knows the group.
        """
        return self._run(self._aio.progress, group, topics)

    def summary(self, target: Target = ALL_BROKERS) -> Listing[GroupSummary]:
        """All groups, each in a row: members, rate and lag.

        It takes three requests per broker (21, 201, 317), and one per group that ever was online (203).
        """
        return self._run(self._aio.summary, target)


class Connections(Room[AsyncConnections]):
    """``admin.connections``"""

    def consumers(self, group: str, *, address: str | None = None) -> ConsumerConnection:
        """The members of a group and what they subscribe to: what all brokers of its retry topic know (203).

        Args:
            address: ask this broker only.

        Raises:
            ConsumerNotOnline: no broker knows a member.
            PartialFailure: a broker did not answer, and the others know no member.
            NeverOnline: no consumer of the group ever connected.
        """
        return self._run(self._aio.consumers, group, address=address)

    def all_consumers(
        self, target: Target = ALL_BROKERS
    ) -> ByServer[dict[str, ConsumerConnection]]:
        """All consumers that each broker knows, by group; groups of which nobody is online there are left out.

        It takes a request per broker (201), and one for each of its groups (203).
        """
        return self._run(self._aio.all_consumers, target)

    def producers(self, group: str, topic: str) -> ProducerConnection:
        """The members of a producer group: what all brokers of a topic know (204).

        Raises:
            BrokerReplyError: no broker knows a member.
            NoRoute: no name server knows the topic.
        """
        return self._run(self._aio.producers, group, topic)

    def all_producers(self, target: Target = ALL_BROKERS) -> ByServer[ProducerTable]:
        """All producers that each broker knows, by group (328)."""
        return self._run(self._aio.all_producers, target)

    def running_info(
        self, group: str, client_id: str, *, with_stacks: bool = False, address: str | None = None
    ) -> ConsumerRunningInfo:
        """What a consumer tells about itself: settings, queues, rates (307), by way of a broker that knows it.

        Args:
            with_stacks: what its threads do, too.

        Raises:
            BrokerReplyError: the client is not online, or did not answer.
            NeverOnline: no consumer of the group ever connected.
        """
        return self._run(
            self._aio.running_info, group, client_id, with_stacks=with_stacks, address=address
        )

    def subscription(self, group: str, topic: str) -> ByServer[SubscriptionData | None]:
        """What a group subscribes to in a topic, as each broker of the topic knows it (345); None if it is offline.

        RocketMQ 4 does not know the request; ``consumers`` tells it for all topics of a group.
        """
        return self._run(self._aio.subscription, group, topic)

    def holders(self, group: str) -> dict[MessageQueue, str]:
        """Which client consumes which queue. Clients that do not answer are left out. Raises as ``consumers``."""
        return self._run(self._aio.holders, group)


class Offsets(Room[AsyncOffsets]):
    """``admin.offsets``"""

    def preview(
        self, group: str, topic: str, to: ResetPoint, *, broker: str | None = None
    ) -> list[OffsetMove]:
        """What a reset would do, queue by queue; nothing is changed.

        Args:
            broker: only at this broker.

        Raises:
            NoRoute: no name server knows the topic.
            NoSuchName: the broker or the queue is not there.
            CometError: a broker did not answer.
        """
        return self._run(self._aio.preview, group, topic, to, broker=broker)

    def reset(
        self,
        group: str,
        topic: str,
        to: ResetPoint,
        *,
        broker: str | None = None,
        force: bool = True,
    ) -> ResetResult:
        """Have a group go on elsewhere in a topic, online or not.

        Brokers tell the group's clients (222). Where none is online and the broker needs one, as RocketMQ 4 does, the
        positions are committed instead (15).

        Args:
            broker: only at this broker.
            force: forward, too. Without it no queue's position is set to a later one.

        Raises:
            NoRoute, NoSuchName, UsageError: as ``preview``; nothing was changed then.
        """
        return self._run(self._aio.reset, group, topic, to, broker=broker, force=force)

    def skip(self, group: str, topic: str, *, broker: str | None = None) -> ResetResult:
        """Have a group pass over everything that it has not consumed. Raises as ``reset``."""
        return self._run(self._aio.skip, group, topic, broker=broker)

    def clone(
        self, source: str, destination: str, topic: str, *, only_offline: bool = True
    ) -> ResetResult:
        """Have one group start in a topic where another one is.

        Args:
            only_offline: refuse if the destination is online: its clients would commit their own positions again.

        Raises:
            NoSuchName: the source has no positions in the topic.
            UsageError: the destination is online.
        """
        return self._run(self._aio.clone, source, destination, topic, only_offline=only_offline)

    def commit(self, group: str, offsets: Mapping[MessageQueue, int]) -> ResetResult:
        """Set positions of a group as a client would (15). Clients that are online overwrite them; see ``reset``.

        Raises:
            UsageError: an offset below 0.
        """
        return self._run(self._aio.commit, group, offsets)

    def time_span(self, group: str, topic: str) -> Listing[ConsumeTimeSpan]:
        """Times of the first, the last and the last consumed message of each queue (303). Raises NoRoute."""
        return self._run(self._aio.time_span, group, topic)

    def of_clients(
        self, group: str, topic: str, client_id: str | None = None
    ) -> ByServer[dict[str, dict[MessageQueue, int]]]:
        """The positions that the group's clients hold in memory, by client id (223)."""
        return self._run(self._aio.of_clients, group, topic, client_id)
