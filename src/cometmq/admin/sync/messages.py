"""The blocking face of ``cometmq.admin.messages``. Written by tools/admin_sync.py; do not edit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cometmq.admin.messages.dead_letters import DeadLetter, ResentLetters
from cometmq.admin.messages.dead_letters import DeadLetters as AsyncDeadLetters
from cometmq.admin.messages.fate import MessageTrack
from cometmq.admin.messages.messages import Messages as AsyncMessages
from cometmq.admin.messages.traces import MessageTrace
from cometmq.admin.messages.traces import Traces as AsyncTraces
from cometmq.admin.sync.room import Room
from cometmq.client.core.consume.expression import Expression
from cometmq.client.core.message_lookup import TIME_MS_MAX
from cometmq.client.core.queue_answers import Bounds
from cometmq.client.core.send.send_result import SendResult
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import TRACE_TOPIC
from cometmq.protocol.bodies.running import ConsumeDirectlyResult
from cometmq.protocol.bodies.stats import ConsumeQueueEntries


class Messages(Room[AsyncMessages]):
    """``admin.messages``"""

    def by_id(self, message_id: str, topic: str | None = None) -> ReceivedMessage:
        """The message with an offset id (33), or with a unique id of a topic (12).

        Raises:
            UsageError: the text is no message id, or it is a unique id and no topic is given.
            MessageNotFound: no broker has it, or no longer.
        """
        return self._run(self._aio.by_id, message_id, topic)

    def all_by_id(self, topic: str, unique_id: str) -> list[ReceivedMessage]:
        """All messages of a topic with a unique id, oldest first: a retry has the id of its first attempt."""
        return self._run(self._aio.all_by_id, topic, unique_id)

    def by_key(
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
        return self._run(
            self._aio.by_key, topic, key, begin_ms=begin_ms, end_ms=end_ms, count_max=count_max
        )

    def by_offset(self, queue: MessageQueue, offset: int) -> ReceivedMessage:
        """The message at an offset of a queue (11).

        Raises:
            MessageNotFound: the queue does not have it, or no longer.
            NoSuchName: no such topic, or not at that broker.
        """
        return self._run(self._aio.by_offset, queue, offset)

    def ranges(
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
        return self._run(
            self._aio.ranges,
            topic,
            begin_ms=begin_ms,
            end_ms=end_ms,
            broker=broker,
            queue_id=queue_id,
        )

    def read(
        self, queue: MessageQueue, bounds: Bounds, expression: Expression = "*"
    ) -> Iterator[ReceivedMessage]:
        """The messages of a queue from ``bounds.first`` up to ``bounds.end``, which is not included.

        Raises:
            UsageError: the expression is none.
            CometError: the broker refused or did not answer.
        """
        return self._each(self._aio.read(queue, bounds, expression))

    def scan(
        self,
        topic: str,
        *,
        begin_ms: int | None = None,
        end_ms: int | None = None,
        expression: Expression = "*",
        broker: str | None = None,
        queue_id: int | None = None,
    ) -> Iterator[ReceivedMessage]:
        """All messages of a topic, or those stored between two times, queue by queue; raises as both above."""
        return self._each(
            self._aio.scan(
                topic,
                begin_ms=begin_ms,
                end_ms=end_ms,
                expression=expression,
                broker=broker,
                queue_id=queue_id,
            )
        )

    def send(self, message: Message, *, queue: MessageQueue | None = None) -> SendResult:
        """Send a message, to one queue if that is given. Raises as ``Producer.send``."""
        return self._run(self._aio.send, message, queue=queue)

    def recall(self, topic: str, recall_handle: str) -> str:
        """Take back a message that is not due yet. Returns its id. Raises as ``Producer.recall``."""
        return self._run(self._aio.recall, topic, recall_handle)

    def resend(self, message: ReceivedMessage, group: str) -> SendResult:
        """Deliver a message to one group again, and to no other: its retries begin anew.

        It keeps its id, keys, tags and properties, and goes through the group's retry topic.

        Raises:
            NeverOnline: no consumer of the group ever connected, so that it has no retry topic.
            UsageError: its body cannot be read.
        """
        return self._run(self._aio.resend, message, group)

    def consume_directly(
        self, message: ReceivedMessage, group: str, client_id: str
    ) -> ConsumeDirectlyResult:
        """Have one consumer of a group consume a message now, and say what came of it (309). No position changes.

        Raises:
            BrokerReplyError: the consumer is not online, or did not answer.
        """
        return self._run(self._aio.consume_directly, message, group, client_id)

    def check_again(self, message: ReceivedMessage) -> None:
        """Have a broker ask the producer of a half message for its outcome again, after it gave up on that (323).

        Args:
            message: as it lies in the topic of half messages, or of those that were given up.

        Raises:
            BrokerReplyError: it is no such message, or no longer there.
        """
        return self._run(self._aio.check_again, message)

    def tracks(self, message: ReceivedMessage) -> list[MessageTrack]:
        """What became of a message in each group of its topic: consumed, filtered out, not yet, ..."""
        return self._run(self._aio.tracks, message)

    def queue_entries(
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
        return self._run(
            self._aio.queue_entries,
            topic,
            queue_id,
            index,
            count=count,
            broker=broker,
            address=address,
            group=group,
        )


class DeadLetters(Room[AsyncDeadLetters]):
    """``admin.dead_letters``"""

    def count(self, group: str) -> int:
        """How many dead letters of a group there are."""
        return self._run(self._aio.count, group)

    def scan(
        self, group: str, *, begin_ms: int | None = None, end_ms: int | None = None
    ) -> Iterator[DeadLetter]:
        """The dead letters of a group, or those that were given up between two times; none if it never had one.

        Raises:
            CometError: a broker did not answer.
        """
        return self._each(self._aio.scan(group, begin_ms=begin_ms, end_ms=end_ms))

    def resend(self, group: str, letters: Iterable[DeadLetter]) -> ResentLetters:
        """Deliver dead letters to their group again, and to no other; their retries begin anew.

        The dead letters stay where they are until they expire: who resends twice, delivers twice.

        Raises:
            NeverOnline: no consumer of the group ever connected.
        """
        return self._run(self._aio.resend, group, letters)


class Traces(Room[AsyncTraces]):
    """``admin.traces``"""

    def of_message(
        self,
        message_id: str,
        *,
        topic: str = TRACE_TOPIC,
        begin_ms: int = 0,
        end_ms: int = TIME_MS_MAX,
        count_max: int = 64,
    ) -> MessageTrace:
        """What was reported about a message (12 in the topic of traces); nothing if it is not traced.

        Args:
            topic: where the clients write their traces.
            count_max: how many trace messages each broker looks up, at most 64.

        Raises:
            NoRoute: there is no such topic.
            RemoteProtocolError: a trace cannot be read.
        """
        return self._run(
            self._aio.of_message,
            message_id,
            topic=topic,
            begin_ms=begin_ms,
            end_ms=end_ms,
            count_max=count_max,
        )
