"""What a driver asks a cluster: topics, queues, offsets by place and time, positions of the group. Blocking.

Requests that concern many queues leave together and their replies are gathered, so that a trigger costs one round trip
per broker and not one per queue. The master of a queue is asked first, a replica of it when the master does not answer.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from cometmq.base.errors import CometError, ConnectionLost, RemoteProtocolError, RemotingError
from cometmq.client.core.namespace import unwrap, wrap
from cometmq.client.core.publish_queues import subscribe_queues
from cometmq.client.errors import BrokerNotKnown, NoNameServer, NoRoute
from cometmq.model.ids import MASTER_ID
from cometmq.model.message_queue import MessageQueue
from cometmq.model.route import TopicRoute
from cometmq.protocol.bodies.heartbeat import HeartbeatData
from cometmq.protocol.bodies.route import ClusterInfo, decode_route
from cometmq.protocol.bodies.topic import TopicList
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import Header, decode_fields, encode_fields
from cometmq.protocol.headers.offsets import (
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    OffsetReply,
    QueryConsumerOffsetHeader,
    SearchOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from cometmq.protocol.headers.route import GetRouteInfoHeader
from cometmq.protocol.reply_errors import error_for
from cometmq.spark.connection import BlockingConnection
from cometmq.spark.options import ConnectionOptions

logger = logging.getLogger("cometmq.spark")

CALLS_UNDER_WAY_MAX: Final = 64
"""Requests sent ahead of their replies."""

SHUN_SECONDS: Final = 10.0
"""How long an address that did not answer is asked only when there is no other."""

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Place:
    """An address of a broker."""

    address: str
    is_master: bool


@dataclass(frozen=True, slots=True)
class Bounds:
    """A queue holds offsets from ``first`` up to ``end``, which is not included; as who was asked sees it."""

    first: int
    end: int
    is_master: bool = True


@dataclass(slots=True)
class Answers:
    """Replies by queue, with who gave them; and why there is none."""

    replies: dict[MessageQueue, tuple[Command, Place]] = field(default_factory=dict)
    failures: dict[MessageQueue, CometError] = field(default_factory=dict)

    def raise_first(self) -> None:
        for failure in self.failures.values():
            raise failure


class Cluster:
    """Connections stay open between calls. Topics and groups are named as users know them. Not thread-safe."""

    def __init__(
        self, options: ConnectionOptions, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._options = options
        self._clock = clock
        self._name_servers = list(options.name_servers)
        random.shuffle(self._name_servers)
        self._connections: dict[str, BlockingConnection] = {}
        self._shunned_until: dict[str, float] = {}
        self._places: dict[str, tuple[Place, ...]] = {}
        self._committed_to: set[tuple[str, str]] = set()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # ── where things are ──

    def topics(self) -> list[str]:
        """All topics of the namespace."""
        request = Command(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        reply, address = self._ask_name_server(request)
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, address)
        names = TopicList.decode(reply.body).topic_list
        namespace = self._options.namespace
        return sorted(unwrap(namespace, name) for name in names if wrap(namespace, name) == name)

    def queues(self, topic: str) -> list[MessageQueue]:
        """The readable queues of a topic; its brokers are known from now on. Raises as ``route`` does."""
        return subscribe_queues(topic, self.route(topic))

    def route(self, topic: str) -> TopicRoute:
        """Where the queues of a topic are.

        Raises:
            NoRoute: no name server knows the topic.
            NoNameServer: none answers.
            RemoteProtocolError: what it answered cannot be a route.
        """
        header = GetRouteInfoHeader(
            topic=wrap(self._options.namespace, topic), accept_standard_json_only=True
        )
        request = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, encode_fields(header))
        reply, address = self._ask_name_server(request)
        if reply.code == ResponseCode.TOPIC_NOT_EXIST:
            raise NoRoute(f"no name server knows the topic {topic!r}")
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, address)
        try:
            route = decode_route(reply.body)
        except RemoteProtocolError as error:
            raise RemoteProtocolError(
                f"name server {address} told of topic {topic!r}: {error}"
            ) from None
        self._learn(route)
        return route

    def has_brokers(self) -> bool:
        """Whether a name server knows any broker now; False, too, when none answers."""
        try:
            reply, _ = self._ask_name_server(Command(RequestCode.GET_BROKER_CLUSTER_INFO))
        except NoNameServer:
            return False
        if reply.code != ResponseCode.SUCCESS:
            return False
        return bool(ClusterInfo.decode(reply.body).broker_addr_table)

    def places(self, broker_name: str) -> tuple[Place, ...]:
        """The known addresses of a broker, the master's first."""
        return self._places.get(broker_name, ())

    # ── offsets ──

    def bounds(
        self, queues: Iterable[MessageQueue]
    ) -> tuple[dict[MessageQueue, Bounds], dict[MessageQueue, CometError]]:
        """First and end offsets of those queues whose broker answers; why not of the others."""
        wanted = list(queues)
        least = self.ask(wanted, RequestCode.GET_MIN_OFFSET, self._min_header)
        # After the first offsets: so the end is never before the first.
        most = self.ask(list(least.replies), RequestCode.GET_MAX_OFFSET, self._max_header)
        failures = {**least.failures, **most.failures}
        bounds: dict[MessageQueue, Bounds] = {}
        for queue, (reply, place) in most.replies.items():
            try:
                first = _offset(*least.replies[queue])
                bounds[queue] = Bounds(first, _offset(reply, place), place.is_master)
            except CometError as error:
                failures[queue] = error
        return bounds, failures

    def offsets_by_time(self, queues: Mapping[MessageQueue, int]) -> dict[MessageQueue, int]:
        """What brokers say is the offset of a time in ms. RocketMQ 4.9 says the nearest, others the first after it."""

        def header(queue: MessageQueue) -> Header:
            return SearchOffsetHeader(
                topic="", queue_id=queue.queue_id, timestamp=queues[queue], boundary_type="LOWER"
            )

        answers = self.ask(list(queues), RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        answers.raise_first()
        return {queue: _offset(*answer) for queue, answer in answers.replies.items()}

    def group_offsets(
        self, group: str, queues: Sequence[MessageQueue]
    ) -> dict[MessageQueue, int | None]:
        """The committed offsets of a group; None where there is none."""

        def header(queue: MessageQueue) -> Header:
            # Without this a broker answers 0 for a queue whose first message is still in memory; RocketMQ 4.9 always.
            return QueryConsumerOffsetHeader(
                consumer_group=self._wire_group(group),
                topic="",
                queue_id=queue.queue_id,
                set_zero_if_not_found=False,
            )

        answers = self.ask(queues, RequestCode.QUERY_CONSUMER_OFFSET, header)
        answers.raise_first()
        return {
            queue: None if reply.code == ResponseCode.QUERY_NOT_FOUND else _offset(reply, place)
            for queue, (reply, place) in answers.replies.items()
        }

    def commit(
        self, group: str, offsets: Mapping[MessageQueue, int]
    ) -> dict[MessageQueue, CometError]:
        """Store positions of a group at the masters; what went wrong, by queue."""

        def header(queue: MessageQueue) -> Header:
            return UpdateConsumerOffsetHeader(
                consumer_group=self._wire_group(group),
                topic="",
                queue_id=queue.queue_id,
                commit_offset=offsets[queue],
            )

        # A broker of RocketMQ that knows nothing yet of group and topic may lose one of two commits that come at the
        # same time, so the first goes alone.
        first: dict[tuple[str, str], MessageQueue] = {}
        for queue in offsets:
            place = (queue.broker_name, queue.topic)
            if place not in self._committed_to:
                first.setdefault(place, queue)
        failures: dict[MessageQueue, CometError] = {}
        alone = list(first.values())
        for queues in (alone, [queue for queue in offsets if queue not in set(alone)]):
            answers = self.ask(queues, RequestCode.UPDATE_CONSUMER_OFFSET, header, only_master=True)
            failures.update(answers.failures)
            for queue, (reply, where) in answers.replies.items():
                if reply.code != ResponseCode.SUCCESS:
                    failures[queue] = error_for(reply, where.address)
                else:
                    self._committed_to.add((queue.broker_name, queue.topic))
        return failures

    def greet(self, heartbeat: HeartbeatData, broker_names: Iterable[str]) -> None:
        """Tell the masters that a group is here, so that tools show it. Best effort."""
        for broker_name in broker_names:
            for place in self.places(broker_name)[:1]:
                request = Command(RequestCode.HEART_BEAT, body=heartbeat.encode())
                try:
                    (reply,) = self._call_all(place.address, [request])
                    if reply.code != ResponseCode.SUCCESS:
                        raise error_for(reply, place.address)
                except CometError as error:
                    logger.warning("heartbeat failed broker=%s reason=%s", place.address, error)

    # ── asking ──

    def ask(
        self,
        queues: Sequence[MessageQueue],
        code: RequestCode,
        header: Callable[[MessageQueue], Header],
        *,
        only_master: bool = False,
    ) -> Answers:
        """One request per queue. The header's topic and broker name are set here, to what they are on the wire."""
        answers = Answers()
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            by_broker.setdefault(queue.broker_name, []).append(queue)
        for broker_name, group in by_broker.items():
            places = self._in_order(broker_name)
            if only_master:
                places = [place for place in places if place.is_master]
            failure: CometError = BrokerNotKnown(f"no route names broker {broker_name!r}")
            for place in places:
                requests = [self._request(queue, code, header(queue)) for queue in group]
                try:
                    replies = self._call_all(place.address, requests)
                except CometError as error:
                    failure = error
                    continue
                for queue, reply in zip(group, replies, strict=True):
                    answers.replies[queue] = (reply, place)
                break
            else:
                answers.failures.update(dict.fromkeys(group, failure))
        return answers

    def _request(self, queue: MessageQueue, code: RequestCode, header: Header) -> Command:
        ext = encode_fields(header)
        ext["topic"] = wrap(self._options.namespace, queue.topic)
        ext["bname"] = queue.broker_name
        return Command(code, ext)

    def _ask_name_server(self, request: Command) -> tuple[Command, str]:
        failure: CometError | None = None
        for address in list(self._name_servers):
            try:
                return self._call_all(address, [request])[0], address
            except RemotingError as error:
                failure = error
                # The next one is asked first from now on.
                self._name_servers.append(self._name_servers.pop(0))
        raise NoNameServer(f"no name server answered, the last one said: {failure}")

    def _call_all(self, address: str, requests: Sequence[Command]) -> list[Command]:
        """Replies in the order of the requests. Raises RemotingError."""
        is_old = address in self._connections
        try:
            return self._try_all(address, requests)
        except ConnectionLost:
            # A connection that was not used for long is closed by the server.
            if not is_old:
                raise
            return self._try_all(address, requests)

    def _try_all(self, address: str, requests: Sequence[Command]) -> list[Command]:
        try:
            connection = self._connections.get(address)
            if connection is None:
                connection = self._connections[address] = open_connection(address, self._options)
            replies: list[Command] = []
            numbers: list[int] = []
            for request in requests:
                numbers.append(connection.send(request))
                if len(numbers) - len(replies) >= CALLS_UNDER_WAY_MAX:
                    replies.append(connection.receive(numbers[len(replies)]))
            replies.extend(connection.receive(number) for number in numbers[len(replies) :])
        except CometError:
            self._shunned_until[address] = self._clock() + SHUN_SECONDS
            if (broken := self._connections.pop(address, None)) is not None:
                broken.close()
            raise
        self._shunned_until.pop(address, None)
        return replies

    def _in_order(self, broker_name: str) -> list[Place]:
        now = self._clock()
        return sorted(
            self.places(broker_name),
            key=lambda place: (
                self._shunned_until.get(place.address, 0.0) > now,
                not place.is_master,
            ),
        )

    def _learn(self, route: TopicRoute) -> None:
        for data in route.broker_datas:
            self._places[data.broker_name] = tuple(
                Place(address, broker_id == MASTER_ID)
                for broker_id, address in sorted(data.broker_addrs.items())
            )

    def _wire_group(self, group: str) -> str:
        return wrap(self._options.namespace, group)

    @staticmethod
    def _min_header(queue: MessageQueue) -> Header:
        return GetMinOffsetHeader(topic="", queue_id=queue.queue_id)

    @staticmethod
    def _max_header(queue: MessageQueue) -> Header:
        return GetMaxOffsetHeader(topic="", queue_id=queue.queue_id)


def open_connection(
    address: str, options: ConnectionOptions, *, seconds_min: float = 0.0
) -> BlockingConnection:
    """Args:
        seconds_min: a reply is waited for at least so long, whatever ``callTimeout`` says.

    Raises:
        ConnectFailed: nobody answers there.
    """
    return BlockingConnection(
        address,
        tls=options.tls,
        credentials=options.credentials,
        timeout=max(options.call_seconds, seconds_min),
    )


def _offset(reply: Command, place: Place) -> int:
    if reply.code != ResponseCode.SUCCESS:
        raise error_for(reply, place.address)
    return decode_fields(OffsetReply, reply.ext).offset
