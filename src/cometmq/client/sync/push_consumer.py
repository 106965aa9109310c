"""Delivers messages to a listener, in threads; ``aio.push_consumer`` does it.

def handle(message: ReceivedMessage) -> None: ...

with PushConsumer("billing", listener=handle, name_servers="127.0.0.1:9876") as consumer:
    consumer.subscribe("Orders", "paid || refunded")
    ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from cometmq.client import aio
from cometmq.client.aio.consume_hooks import ConsumeHook
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.core.outcome import Outcome
from cometmq.client.sync.client import Queries, check_is_plain
from cometmq.model.message_queue import MessageQueue
from cometmq.model.received_message import ReceivedMessage
from cometmq.model.subscription import Expression

Listener = Callable[[ReceivedMessage], Outcome | None]
BatchListener = Callable[[list[ReceivedMessage]], Outcome | None]


class PushConsumer(Queries):
    """A member of a consumer group.

    Args:
        listener: called with each message, by one of ``consume_thread_max`` threads. It may return an ``Outcome``;
            returning nothing means consumed, an exception means: deliver again later. It may use blocking clients.
        batch_listener: instead, called with up to ``consume_batch_max`` messages.
        orderly: messages of a queue one after the other; a failed one holds its queue up until it succeeds.
        name_servers: in place of those in ``config``.

    Raises:
        UsageError: not exactly one listener, one that is an ``async def``, or a group name that cannot be used.
    """

    def __init__(
        self,
        group: str,
        *,
        listener: Listener | None = None,
        batch_listener: BatchListener | None = None,
        orderly: bool = False,
        name_servers: str | Sequence[str] | None = None,
        config: PushConsumerConfig | None = None,
    ) -> None:
        check_is_plain("listener", listener)
        check_is_plain("batch_listener", batch_listener)
        self._aio = aio.PushConsumer(
            group,
            listener=listener,
            batch_listener=batch_listener,
            orderly=orderly,
            name_servers=name_servers,
            config=config,
        )
        super().__init__(self._aio)
        self.config = self._aio.config
        self.is_orderly = orderly
        self.hooks: list[ConsumeHook] = self._aio.hooks
        """For trace and telemetry: called around each call of the listener, by its thread."""

    def __repr__(self) -> str:
        state = "running" if self._is_running else "not running"
        return f"<PushConsumer {self.group!r} {state}>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def subscribe(self, topic: str, expression: Expression = "*") -> None:
        """Want messages of a topic: all, those with tags like ``a || b``, those that meet a condition ``Sql(...)``, or
        those that a ``FilterFunction(...)`` of the broker wants.

        Again with another expression replaces the first. While running it takes effect within moments.

        Raises:
            UsageError: the topic's name or the expression cannot be used.
        """
        self._tell(self._aio.subscribe, topic, expression)

    def unsubscribe(self, topic: str) -> None:
        """Want no more messages of a topic. Those in work are finished first."""
        self._tell(self._aio.unsubscribe, topic)

    def suspend(self) -> None:
        """Pull no more until ``resume``. What was pulled before is still delivered."""
        self._tell(self._aio.suspend)

    def resume(self) -> None:
        """Pull again after ``suspend``."""
        self._tell(self._aio.resume)

    @property
    def group(self) -> str:
        """The group's name on the wire, with its namespace."""
        return self._aio.group

    @property
    def client_id(self) -> str:
        """Who it is in its group. Raises ClientClosed when it does not run."""
        return self._ask(lambda: self._aio.client_id)

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that this consumer has now, with their topics as on the wire."""
        return self._tell(lambda: self._aio.queues)

    def start(self) -> None:
        """Join the group and begin to consume.

        Raises:
            UsageError: it runs already, or its group is in use with the same client id.
            BrokerReplyError: a broker cannot filter by a condition that is subscribed.
            CometError: no name server could be asked.
        """
        self._start(self._aio.start)

    def close(self) -> None:
        """Leave the group. Listeners may end what they are at (``await_termination_ms``), and exactly what was consumed
        is committed, so that the others of the group go on without loss or repetition.

        A listener that closes its own consumer waits for itself that long; let another thread do it.
        """
        self._close(self._aio.close)
