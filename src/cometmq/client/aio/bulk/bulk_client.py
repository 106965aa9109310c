"""A client for programs that plan themselves what to read and write, queue by queue: engines such as Spark.

It asks about many queues at once (``queue_calls``), and moves megabytes over connections of its own (``broker_link``,
``raw_pull``). It joins no group: no queues are shared out to it. Nothing happens in the background, so its event loop
need not run all the time; ``client.sync.bulk_client`` makes use of that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from cometmq.base.errors import CometError
from cometmq.base.ports import Clock
from cometmq.client.aio.bulk.broker_link import BrokerLink
from cometmq.client.aio.bulk.queue_calls import QueueCalls
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.offsets.group_offsets import GroupOffsets
from cometmq.client.aio.pull.pull_role import Positions, PullRole
from cometmq.client.aio.send.publish_routes import PublishRoutes
from cometmq.client.client_config import ClientConfig
from cometmq.client.core.broker_order import Place
from cometmq.client.core.queue_answers import Answers, Bounds
from cometmq.client.core.send.publish_queues import subscribe_queues
from cometmq.client.errors import NoNameServer
from cometmq.model.consumption import ConsumeFromWhere, MessageModel
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import AUTO_CREATE_TOPIC
from cometmq.model.subscription import SubscriptionData, build_subscription
from cometmq.protocol.bodies.route import ClusterInfo
from cometmq.protocol.bodies.topic import TopicList
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import Header, decode_fields
from cometmq.protocol.headers.offsets import (
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    OffsetReply,
    QueryConsumerOffsetHeader,
    SearchOffsetHeader,
)
from cometmq.protocol.reply_errors import error_for

logger = logging.getLogger("cometmq.client")


class BulkClient:
    """Make it inside of its event loop, and ``close`` it. Topics, queues and groups have no namespace in their names.

    Args:
        instance: use this one, of the same settings; whoever made it releases it.

    Raises:
        UsageError: no name server is given.
        ConfigError: the TLS settings cannot be used.
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        clock: Clock | None = None,
        instance: ClientInstance | None = None,
    ) -> None:
        self._instance = instance or ClientInstance(config, clock=clock)
        self._is_own = instance is None
        self._calls = QueueCalls(self._instance)
        self._positions: dict[str, GroupOffsets] = {}
        self._groups: dict[str, _Group] = {}

    async def close(self) -> None:
        """Brokers hear that announced groups have left; all connections are closed."""
        if self._is_own:
            await self._instance.release()

    # Where things are.

    async def topics(self) -> list[str]:
        """All topics of the namespace.

        Raises:
            NoNameServer: none answers.
            BrokerReplyError: the one that does refuses.
        """
        request = Command(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        reply, address = await self._instance.ask_name_server(request)
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, address)
        instance = self._instance
        return sorted(
            instance.unwrap_topic(name)
            for name in TopicList.decode(reply.body).topic_list
            if instance.wrap_topic(name) == name
        )

    async def has_brokers(self) -> bool:
        """Whether a name server knows any broker now; False, too, when none answers."""
        request = Command(RequestCode.GET_BROKER_CLUSTER_INFO)
        try:
            reply, _ = await self._instance.ask_name_server(request)
        except NoNameServer:
            return False
        if reply.code != ResponseCode.SUCCESS:
            return False
        return bool(ClusterInfo.decode(reply.body).broker_addr_table)

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The readable queues that a topic has now; its brokers are known from now on.

        Raises:
            NoRoute: no name server knows the topic.
            NoNameServer: none answers, and nothing is known yet.
            RemoteProtocolError: what it answers cannot be a route.
        """
        route = await self._instance.route(self._instance.wrap_topic(topic), fresh=True)
        return subscribe_queues(topic, route)

    async def publish_queues(self, topic: str, *, queues_of_new: int) -> list[MessageQueue]:
        """The writable queues of a topic, or those it will have when a broker makes it.

        Args:
            queues_of_new: how many a broker is to make.

        Raises:
            UsageError: nothing may be sent to the topic.
            NoRoute, NoNameServer: no queue can be found.
        """
        routes = PublishRoutes(
            self._instance, create_topic_key=AUTO_CREATE_TOPIC, create_queue_count=queues_of_new
        )
        return list((await routes.find(topic)).queues)

    async def look_again(self, topic: str) -> None:
        """Ask where the brokers of a topic, or those that would make it, are now. Raises NoRoute, NoNameServer."""
        await self._instance.publish_route(self._instance.wrap_topic(topic), fresh=True)

    def places(self, broker_name: str) -> tuple[Place, ...]:
        """The known addresses of a broker, the master's first."""
        return self._calls.places(broker_name)

    # Questions about many queues.

    async def ask(
        self,
        queues: Iterable[MessageQueue],
        code: RequestCode,
        header: Callable[[MessageQueue], Header],
    ) -> Answers:
        """One request per queue, of its master or a replica; see ``queue_calls``.

        The header's topic and broker name are set here, to what they are on the wire.
        """
        return await self._calls.ask(queues, code, header)

    async def bounds(
        self, queues: Iterable[MessageQueue]
    ) -> tuple[dict[MessageQueue, Bounds], dict[MessageQueue, CometError]]:
        """First and end offsets of those queues whose broker answers; why not of the others."""
        least = await self.ask(queues, RequestCode.GET_MIN_OFFSET, _min_header)
        # After the first offsets: so the end is never before the first.
        most = await self.ask(list(least.replies), RequestCode.GET_MAX_OFFSET, _max_header)
        failures = {**least.failures, **most.failures}
        bounds: dict[MessageQueue, Bounds] = {}
        for queue, (reply, place) in most.replies.items():
            try:
                first = _offset(*least.replies[queue])
                bounds[queue] = Bounds(first, _offset(reply, place), place.is_master)
            except CometError as error:
                failures[queue] = error
        return bounds, failures

    async def offsets_by_time(self, times: Mapping[MessageQueue, int]) -> dict[MessageQueue, int]:
        """What brokers say is the offset of a time in ms. RocketMQ 4.9 says the nearest, others the first after it.

        Raises:
            CometError: a broker could not be asked.
        """

        def header(queue: MessageQueue) -> Header:
            return SearchOffsetHeader(
                topic="", queue_id=queue.queue_id, timestamp=times[queue], boundary_type="LOWER"
            )

        answers = await self.ask(times, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        answers.raise_first()
        return {queue: _offset(*answer) for queue, answer in answers.replies.items()}

    # Groups.

    async def committed(
        self, group: str, queues: Sequence[MessageQueue]
    ) -> dict[MessageQueue, int | None]:
        """The committed offsets of a group; None where there is none. Raises as ``offsets_by_time`` does."""

        def header(queue: MessageQueue) -> Header:
            # Without this a broker answers 0 for a queue whose first message is still in memory; RocketMQ 4.9 always.
            return QueryConsumerOffsetHeader(
                consumer_group=self._instance.wrap_group(group),
                topic="",
                queue_id=queue.queue_id,
                set_zero_if_not_found=False,
            )

        answers = await self.ask(queues, RequestCode.QUERY_CONSUMER_OFFSET, header)
        answers.raise_first()
        return {
            queue: None if reply.code == ResponseCode.QUERY_NOT_FOUND else _offset(reply, place)
            for queue, (reply, place) in answers.replies.items()
        }

    async def commit(
        self, group: str, offsets: Mapping[MessageQueue, int]
    ) -> dict[MessageQueue, CometError]:
        """Store positions of a group at the masters; what went wrong, by queue."""
        positions = self._positions.get(group)
        if positions is None:
            wire_group = self._instance.wrap_group(group)
            positions = GroupOffsets(self._instance, wire_group, local_directory=None)
            self._positions[group] = positions
        failures: dict[MessageQueue, CometError] = {}
        for queue, failure in (await positions.commit(offsets)).items():
            if not isinstance(failure, CometError):
                raise failure
            failures[queue] = failure
        return failures

    async def announce(
        self, group: str, topics: Sequence[str], expression: str, expression_type: str | None
    ) -> None:
        """Tell brokers that a group is here and what it reads, so that tools show it. Best effort: failures are logged.

        Brokers forget it unless they hear of it again within two minutes.
        """
        known = self._groups.get(group)
        if known is None:
            known = self._groups[group] = _Group(self._instance.wrap_group(group))
            self._instance.add_consumer(known.role)
        known.reads(
            list(map(self._instance.wrap_topic, topics)),
            expression,
            expression_type,
            self._instance.clock.wall_ms(),
        )
        await self._instance.heartbeat()

    # Megabytes.

    async def link(self, address: str, silence_seconds: float) -> BrokerLink:
        """A connection for requests that are sent ahead; one at a time to each address.

        Args:
            silence_seconds: how long the broker may send nothing while somebody waits for a reply.

        Raises:
            ConnectFailed: nobody answers there.
        """
        instance = self._instance
        connection = await instance.connection(address)
        return BrokerLink(address, connection, instance.sign, silence_seconds)

    def __repr__(self) -> str:
        return f"<BulkClient {self._instance.client_id}>"


class _Group:
    """What brokers are told of a group; it takes no orders from them."""

    def __init__(self, wire_group: str) -> None:
        self._reads: tuple[list[str], str, str | None] | None = None
        self._subscriptions: list[SubscriptionData] = []
        self.role = PullRole(
            group=wire_group,
            message_model=MessageModel.CLUSTERING,
            consume_from=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            wanted=lambda: self._subscriptions,
            watched=lambda: [one.topic for one in self._subscriptions],
            rebalance=lambda: None,
            current=dict,
            reset=self._reset,
        )

    def reads(
        self, wire_topics: list[str], expression: str, expression_type: str | None, now_ms: int
    ) -> None:
        reads = (wire_topics, expression, expression_type)
        if reads == self._reads:
            return
        # Brokers take a subscription for a new one by its version.
        self._reads = reads
        self._subscriptions = [
            build_subscription(topic, expression, expression_type, version=now_ms)
            for topic in wire_topics
        ]

    async def _reset(self, offsets: Positions) -> None:
        if offsets:
            logger.warning(
                "reset passed over group=%s reason=its reader keeps the positions", self.role.group
            )


def _offset(reply: Command, place: Place) -> int:
    if reply.code != ResponseCode.SUCCESS:
        raise error_for(reply, place.address)
    return decode_fields(OffsetReply, reply.ext).offset


def _min_header(queue: MessageQueue) -> Header:
    return GetMinOffsetHeader(topic="", queue_id=queue.queue_id)


def _max_header(queue: MessageQueue) -> Header:
    return GetMaxOffsetHeader(topic="", queue_id=queue.queue_id)
