"""Delivers messages to a listener, in threads. Wraps ``aio.push.push_consumer``.

def handle(message: ReceivedMessage) -> None: ...

with PushConsumer("billing", listener=handle, name_servers="127.0.0.1:9876") as consumer:
    consumer.subscribe("Orders", "paid || refunded")
    ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cometmq.client import aio
from cometmq.client.aio.trace.consume_hooks import ConsumeHook
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.core.consume.outcome import Outcome
from cometmq.client.sync.client import Queries, check_is_plain
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.subscription import Expression

Listener = Callable[[ReceivedMessage], Outcome | None]
BatchListener = Callable[[list[ReceivedMessage]], Outcome | None]


class PushConsumer(Queries):
    """A member of a consumer group.

    Args:
        listener: called with each message, by one of ``consume_thread_max`` threads. It may return an ``Outcome``;
            returning nothing means consumed, an exception means deliver again later. It may use blocking clients.
        batch_listener: called instead, with up to ``consume_batch_max`` messages.
        orderly: deliver messages of a queue one after the other; a failed one blocks its queue until it succeeds.
        name_servers: overrides those in ``config``.

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
        return f"<PushConsumer {self.group!r} {self._state}>"

    def subscribe(self, topic: str, expression: Expression = "*") -> None:
        """Subscribe to a topic: all messages, those with tags like ``a || b``, those that match a condition
        ``Sql(...)``, or those that a ``FilterFunction(...)`` of the broker accepts.

        Another call with a different expression replaces the first. While running, it takes effect within moments.

        Raises:
            UsageError: the topic's name or the expression cannot be used.
        """
        self._tell(self._aio.subscribe, topic, expression)

    def unsubscribe(self, topic: str) -> None:
        """Unsubscribe from a topic. Messages in progress are finished first."""
        self._tell(self._aio.unsubscribe, topic)

    def suspend(self) -> None:
        """Stop pulling until ``resume``. What was pulled before is still delivered."""
        self._tell(self._aio.suspend)

    def resume(self) -> None:
        """Start pulling again after ``suspend``."""
        self._tell(self._aio.resume)

    @property
    def group(self) -> str:
        """The group's name on the wire, with its namespace."""
        return self._aio.group

    @property
    def client_id(self) -> str:
        """Its client id in the group. Raises ClientClosed if it is not running."""
        return self._ask(lambda: self._aio.client_id)

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that this consumer owns now, with their wire topics."""
        return self._tell(lambda: self._aio.queues)

    def start(self) -> None:
        """Join the group and start consuming.

        Raises:
            UsageError: it is already running, or its group is in use with the same client id.
            BrokerReplyError: a broker cannot filter by a subscribed condition.
            CometError: no name server could be reached.
        """
        self._start(self._aio.start)

    def close(self) -> None:
        """Leave the group. Running listeners may finish (``await_termination_ms``), and exactly what was consumed is
        committed, so that the rest of the group continues without loss or duplicates.

        A listener that closes its own consumer waits for itself that long; do it from another thread.
        """
        self._close(self._aio.close)
