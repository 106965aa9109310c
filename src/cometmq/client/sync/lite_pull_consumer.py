"""The lite pull consumer: pulls its queues in the background, and returns messages when polled.

    with LitePullConsumer("group", name_servers=...) as consumer:
        consumer.subscribe("Orders")
        for message in consumer: ...

Wraps ``aio.pull.lite_pull_consumer``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType

from cometmq.base.ports import Clock
from cometmq.client import aio
from cometmq.client.core.consume.expression import Expression
from cometmq.client.errors import ClientClosed
from cometmq.client.lite_pull_config import LitePullConfig
from cometmq.client.sync.client import Queries
from cometmq.client.sync.pull_consumer import QueueListener, in_thread
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage


class LitePullConsumer(Queries):
    """Reads messages with ``poll`` or by iterating. Either ``subscribe`` to topics, whose queues the group shares, or
    ``assign`` queues by hand.

    Only one thread may poll or iterate at a time: asking for more means that the previous messages are done.
    """

    def __init__(
        self,
        group: str,
        *,
        name_servers: str | Sequence[str] | None = None,
        config: LitePullConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises UsageError for an invalid group name or address."""
        self._aio = _Twin(group, name_servers=name_servers, config=config, clock=clock)
        super().__init__(self._aio)
        self._group = group

    def __repr__(self) -> str:
        return f"<LitePullConsumer {self._group!r} {self._state}>"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The error is passed on: the messages of the last poll are not done then.
        self._close(self._aio.__aexit__, kind, error, trace)

    def start(self) -> None:
        """Connect, join the group, and start pulling what is subscribed or assigned. Does nothing if it is already
        running.

        Raises:
            GroupInUse: a consumer of the group is running with the same client id.
            CorruptFile: the positions of a broadcasting consumer cannot be read.
        """
        self._start(self._aio.start)

    def close(self) -> None:
        """Leave the group. With auto commit, everything returned so far is committed as done first."""
        self._close(self._aio.close)

    def subscribe(self, topic: str, expression: Expression = "*") -> None:
        """Take a share of a topic's queues; call it again with another expression to change it.

        Args:
            expression: ``*``, tags joined by ``||``, ``Sql("a > 5")`` or ``FilterFunction("vip")``.

        Raises:
            UsageError: queues are assigned by hand, or an expression that no broker would accept.
        """
        self._tell(self._aio.subscribe, topic, expression)

    def unsubscribe(self, topic: str) -> None:
        """Give up a topic's queues. Does nothing if it is not subscribed."""
        self._tell(self._aio.unsubscribe, topic)

    def assign(self, queues: Iterable[MessageQueue], expression: Expression = "*") -> None:
        """Read exactly these queues, whoever else reads them; call it again with others to change that.

        Raises:
            UsageError: topics are subscribed, or an expression that no broker would accept.
        """
        self._tell(self._aio.assign, list(queues), expression)

    def poll(self, timeout: float | None = None) -> list[ReceivedMessage]:
        """The next messages, from one queue and in order; empty if none arrived in time.

        Asking for them means that everything returned before is done, which auto commit then commits.

        Args:
            timeout: seconds; by default 5 (``poll_timeout_ms``).
        """
        return self._run(self._aio.poll, timeout)

    def __iter__(self) -> Iterator[ReceivedMessage]:
        """One message after the other until the consumer is closed. Asking for the next means that the previous is
        done.

        Each message costs a round trip to the event loop's thread; ``poll`` returns many at a time.
        """
        if not self._is_running:
            raise self._closed()
        while self._is_running:
            try:
                messages = self._run(self._aio.take_one)
            except ClientClosed:
                # Another thread has closed it, which ends the iteration.
                return
            yield from messages

    def assignment(self) -> list[MessageQueue]:
        """The queues that are currently read, sorted."""
        return self._ask(self._aio.assignment)

    def position(self, queue: MessageQueue) -> int | None:
        """The next offset to return; None while it is not yet known where to start.

        Raises:
            UsageError: the queue is not assigned.
        """
        return self._ask(self._aio.position, queue)

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue at ``offset``. Nothing pulled before the seek is returned after it.

        Raises:
            UsageError: the queue is not assigned, or the offset is outside it.
        """
        self._run(self._aio.seek, queue, offset)

    def seek_to_begin(self, queue: MessageQueue) -> None:
        """Continue at the first message that still exists. Raises UsageError if the queue is not assigned."""
        self._run(self._aio.seek_to_begin, queue)

    def seek_to_end(self, queue: MessageQueue) -> None:
        """Continue with what arrives after this call. Raises UsageError if the queue is not assigned."""
        self._run(self._aio.seek_to_end, queue)

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Return nothing from these queues until they are resumed. Raises UsageError if one is not assigned."""
        self._ask(self._aio.pause, list(queues))

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Return messages from paused queues again. Raises UsageError if one is not assigned."""
        self._ask(self._aio.resume, list(queues))

    def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Commit everything returned so far, or exactly these positions. Returns once it is stored.

        Raises:
            CometError: a position was not confirmed; the others were.
        """
        self._run(self._aio.commit, offsets)

    def committed(self, queue: MessageQueue) -> int | None:
        """The committed position of a queue; None if there is none."""
        return self._run(self._aio.committed, queue)

    def queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic, sorted. Raises NoRoute."""
        return self._run(self._aio.queues, topic)

    def on_assignment_changed(self, listener: QueueListener) -> None:
        """Call ``listener(topic, all queues, this consumer's)`` when the group's distribution of a topic changes.

        It is called in a thread and may use this consumer.
        """
        self._tell(self._aio.on_assignment_changed, in_thread(listener))

    def on_queues_changed(self, topic: str, listener: QueueListener) -> None:
        """Check a topic every 30 s and call ``listener(topic, queues, assigned ones)`` when its queues have changed.

        For consumers that assign by hand. The initial queues are not a change. It is called in a thread.
        """
        self._tell(self._aio.on_queues_changed, topic, in_thread(listener))


class _Twin(aio.LitePullConsumer):
    async def take_one(self) -> list[ReceivedMessage]:
        """One step of ``async for``: one message, or none within the time of a poll."""
        return await self._take(1, self._config.poll_timeout_ms / 1000)
