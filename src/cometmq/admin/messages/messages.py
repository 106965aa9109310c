"""Messages: look up by id, key, offset and time; send, send again, hand to one consumer."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

from cometmq.admin.calls import Calls
from cometmq.admin.errors import NeverOnline, NoSuchTopic, no_such
from cometmq.admin.messages.fate import Fates, MessageTrack
from cometmq.admin.messages.sender import ToolProducer
from cometmq.base.errors import UsageError
from cometmq.client.aio.instance.queries import query, query_unique_id, view
from cometmq.client.aio.pull.pull_call import PullCalls, PullStatus
from cometmq.client.core.consume.expression import Expression, subscription_to
from cometmq.client.core.message_lookup import TIME_MS_MAX
from cometmq.client.core.queue_answers import Bounds
from cometmq.client.core.send.publish_queues import publish_queues
from cometmq.client.core.send.retry_message import retry_header
from cometmq.client.core.send.send_result import STORED_CODES, SendResult, send_result
from cometmq.client.errors import MessageNotFound, NoRoute
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.properties import RETRY_TOPIC
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import check_group, retry_topic
from cometmq.protocol.bodies.running import ConsumeDirectlyResult
from cometmq.protocol.bodies.stats import ConsumeQueueEntries
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.headers.admin import ConsumeMessageDirectlyHeader, QueryConsumeQueueHeader
from cometmq.protocol.headers.transaction import ResumeCheckHalfMessageHeader

TOOLS_GROUP = "TOOLS_CONSUMER"
"""RocketMQ's group for tools: every broker has it, and it commits nothing."""

PAGE = 32
DIRECT_SECONDS = 15.0
"""The broker gives the client ten."""


class Messages:
    """``admin.messages``"""

    def __init__(self, calls: Calls, producer: ToolProducer) -> None:
        self._calls = calls
        self._producer = producer
        self._pulls = PullCalls(calls.instance, TOOLS_GROUP)
        self._fates = Fates(calls)

    async def by_id(self, message_id: str, topic: str | None = None) -> ReceivedMessage:
        """The message with an offset id (33), or with a unique id of a topic (12).

        Raises:
            UsageError: the text is no message id, or it is a unique id and no topic is given.
            MessageNotFound: no broker has it, or no longer.
        """
        return await view(self._calls.instance, message_id, topic)

    async def all_by_id(self, topic: str, unique_id: str) -> list[ReceivedMessage]:
        """All messages of a topic with a unique id, oldest first: a retry has the id of its first attempt."""
        found = await query_unique_id(self._calls.instance, topic, unique_id)
        wanted = unique_id.upper()
        return sorted(
            (one for one in found if one.topic == topic and one.message_id.upper() == wanted),
            key=lambda one: one.store_timestamp,
        )

    async def by_key(
        self,
        topic: str,
        key: str,
        *,
        begin_ms: int = 0,
        end_ms: int = TIME_MS_MAX,
        count_max: int = 64,
    ) -> list[ReceivedMessage]:
        """Messages with a key that were stored between two times, newest first; up to 64 of each broker (12).

        Raises:
            CometError: a broker of the topic could not be asked.
        """
        return await query(self._calls.instance, topic, key, begin_ms, end_ms, count_max)

    async def by_offset(self, queue: MessageQueue, offset: int) -> ReceivedMessage:
        """The message at an offset of a queue (11).

        Raises:
            MessageNotFound: the queue does not have it, or no longer.
            NoSuchName: no such topic, or not at that broker.
        """
        masters = await self._calls.masters_of(queue.topic)
        if queue.broker_name not in masters:
            raise no_such(f"topic {queue.topic!r} at broker", queue.broker_name, [*masters])
        found = await self._pulls.pull(
            queue, offset, subscription_to(queue.topic, "*"), count_max=1
        )
        if found.messages and found.messages[0].queue_offset == offset:
            return found.messages[0]
        raise MessageNotFound(
            f"{queue} has no message at offset {offset}; it has {found.min_offset} to {found.max_offset - 1}"
        )

    async def ranges(
        self,
        topic: str,
        *,
        begin_ms: int | None = None,
        end_ms: int | None = None,
        broker: str | None = None,
        queue_id: int | None = None,
    ) -> dict[MessageQueue, Bounds]:
        """The offsets of a topic's queues, or of what was stored between two times, as closely as brokers tell.

        Raises:
            NoRoute: no name server knows the topic.
            NoSuchName: it has no such broker or queue.
            CometError: a broker did not answer.
        """
        if begin_ms is not None and end_ms is not None and begin_ms > end_ms:
            raise UsageError(f"begin_ms {begin_ms} is after end_ms {end_ms}")
        every = await self._calls.queues_of(topic)
        queues = [
            queue
            for queue in every
            if broker in (None, queue.broker_name) and queue_id in (None, queue.queue_id)
        ]
        if every and not queues:
            wanted = f"{broker or 'any broker'}:{'any' if queue_id is None else queue_id}"
            known = [f"{queue.broker_name}:{queue.queue_id}" for queue in every]
            raise no_such(f"queue of topic {topic!r}", wanted, known)
        bounds, failures = await self._calls.queues.bounds(queues)
        for failure in failures.values():
            raise failure
        first = {queue: bounds[queue].first for queue in queues}
        end = {queue: bounds[queue].end for queue in queues}
        if begin_ms is not None:
            found = await self._calls.queues.offsets_by_time(dict.fromkeys(queues, begin_ms))
            first = {queue: max(first[queue], found[queue]) for queue in queues}
        if end_ms is not None:
            found = await self._calls.queues.offsets_by_time(dict.fromkeys(queues, end_ms))
            # What was stored at the end itself is wanted, and RocketMQ 4 tells the nearest offset: one more each.
            end = {queue: min(end[queue], found[queue] + 1) for queue in queues}
        return {queue: Bounds(first[queue], max(first[queue], end[queue])) for queue in queues}

    async def read(
        self, queue: MessageQueue, bounds: Bounds, expression: Expression = "*"
    ) -> AsyncIterator[ReceivedMessage]:
        """The messages of a queue from ``bounds.first`` up to ``bounds.end``, which is not included.

        Raises:
            UsageError: the expression is none.
            CometError: the broker refused or did not answer.
        """
        subscription = subscription_to(queue.topic, expression)
        offset = bounds.first
        while offset < bounds.end:
            found = await self._pulls.pull(
                queue, offset, subscription, count_max=min(PAGE, bounds.end - offset)
            )
            for message in found.messages:
                if message.queue_offset < bounds.end:
                    yield message
            if found.status is PullStatus.NO_NEW_MSG or found.next_offset <= offset:
                return
            offset = found.next_offset

    async def scan(
        self,
        topic: str,
        *,
        begin_ms: int | None = None,
        end_ms: int | None = None,
        expression: Expression = "*",
        broker: str | None = None,
        queue_id: int | None = None,
    ) -> AsyncIterator[ReceivedMessage]:
        """All messages of a topic, or those stored between two times, queue by queue; raises as both above."""
        bounds = await self.ranges(
            topic, begin_ms=begin_ms, end_ms=end_ms, broker=broker, queue_id=queue_id
        )
        low, high = begin_ms or 0, TIME_MS_MAX if end_ms is None else end_ms
        for queue, limits in bounds.items():
            async for message in self.read(queue, limits, expression):
                if low <= message.store_timestamp <= high:
                    yield message

    async def send(self, message: Message, *, queue: MessageQueue | None = None) -> SendResult:
        """Send a message, to one queue if that is given. Raises as ``Producer.send``."""
        return await (await self._producer.ready()).send(message, queue=queue)

    async def recall(self, topic: str, recall_handle: str) -> str:
        """Take back a message that is not due yet. Returns its id. Raises as ``Producer.recall``."""
        return await (await self._producer.ready()).recall(topic, recall_handle)

    async def resend(self, message: ReceivedMessage, group: str) -> SendResult:
        """Deliver a message to one group again, and to no other: its retries begin anew.

        It keeps its id, keys, tags and properties, and goes through the group's retry topic.

        Raises:
            NeverOnline: no consumer of the group ever connected, so that it has no retry topic.
            UsageError: its body cannot be read.
        """
        check_group(group)
        if message.body_error is not None:
            raise UsageError(
                f"message {message.message_id} cannot be sent again: {message.body_error}"
            )
        topic = retry_topic(group)
        try:
            route = await self._calls.route(topic)
        except NoSuchTopic:
            raise NeverOnline(f"no consumer of group {group!r} was ever online here") from None
        queues = publish_queues(topic, route)
        if not queues:
            raise NoRoute(f"topic {topic!r} has no writable queue on any master")
        queue = random.choice(queues)
        header = retry_header(
            message,
            group=group,
            origin_topic=message.properties.get(RETRY_TOPIC, message.topic),
            reconsume_times=0,
            reconsume_times_max=16,
            now_ms=self._calls.instance.clock.wall_ms(),
            is_delayed=False,
        )
        header.queue_id = queue.queue_id
        header.broker_name = queue.broker_name
        header.max_reconsume_times = None
        address = next(
            data.broker_addrs[0]
            for data in route.broker_datas
            if data.broker_name == queue.broker_name
        )
        reply = await self._calls.ask(
            address, RequestCode.SEND_MESSAGE_V2, header, message.body, accepted=STORED_CODES
        )
        return send_result(reply, address, queue, message.message_id)

    async def consume_directly(
        self, message: ReceivedMessage, group: str, client_id: str
    ) -> ConsumeDirectlyResult:
        """Have one consumer of a group consume a message now, and say what came of it (309). No position changes.

        Raises:
            BrokerReplyError: the consumer is not online, or did not answer.
        """
        check_group(group)
        header = ConsumeMessageDirectlyHeader(
            consumer_group=group,
            client_id=client_id,
            msg_id=message.offset_id,
            broker_name=message.broker_name or None,
            topic=message.topic,
        )
        reply = await self._calls.ask(
            message.store_host,
            RequestCode.CONSUME_MESSAGE_DIRECTLY,
            header,
            timeout=DIRECT_SECONDS,
        )
        return ConsumeDirectlyResult.decode(reply.body)

    async def check_again(self, message: ReceivedMessage) -> None:
        """Have a broker ask the producer of a half message for its outcome again, after it gave up on that (323).

        Args:
            message: as it lies in the topic of half messages, or of those that were given up.

        Raises:
            BrokerReplyError: it is no such message, or no longer there.
        """
        header = ResumeCheckHalfMessageHeader(msg_id=message.offset_id, topic=message.topic)
        await self._calls.ask(message.store_host, RequestCode.RESUME_CHECK_HALF_MESSAGE, header)

    async def tracks(self, message: ReceivedMessage) -> list[MessageTrack]:
        """What became of a message in each group of its topic: consumed, filtered out, not yet, ..."""
        return await self._fates.tracks(message)

    async def queue_entries(
        self,
        topic: str,
        queue_id: int,
        index: int,
        *,
        count: int = 10,
        broker: str | None = None,
        address: str | None = None,
        group: str | None = None,
    ) -> ConsumeQueueEntries:
        """Entries of a consume queue as they are in its file (321).

        Args:
            broker: the name of the broker; by default the topic's first.
            address: asked instead.
            group: tell, too, which entries its filter lets through.

        Raises:
            NoRoute, NoSuchName: no such topic, or not at that broker.
            BrokerReplyError: it has no such queue.
        """
        if not address:
            masters = await self._calls.masters_of(topic)
            name = broker or next(iter(masters), "")
            if name not in masters:
                raise no_such(f"topic {topic!r} at broker", name, [*masters])
            address = masters[name]
        header = QueryConsumeQueueHeader(
            topic=topic, queue_id=queue_id, index=index, count=count, consumer_group=group
        )
        code = RequestCode.QUERY_CONSUME_QUEUE
        return await self._calls.table(address, code, ConsumeQueueEntries, header)
