"""Sends messages and waits until brokers have stored them. Wraps ``aio.send.producer``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future

from cometmq.base.errors import TooManyInFlight
from cometmq.base.ports import Clock
from cometmq.client import aio
from cometmq.client.aio.trace.send_hooks import SendHook
from cometmq.client.core.send.queue_selector import Selector
from cometmq.client.core.send.send_result import SendResult
from cometmq.client.producer_config import ProducerConfig
from cometmq.client.sync.client import Queries
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage


class Producer(Queries):
    """``with Producer("orders", name_servers="127.0.0.1:9876") as producer: producer.send(message)``.

    Args:
        group: name of the producer group. Its producers do the same job; brokers ask any of them about transactions.
        name_servers: overrides those in ``config``.
    """

    def __init__(
        self,
        group: str,
        *,
        name_servers: str | Sequence[str] | None = None,
        config: ProducerConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._use(
            aio.Producer(group, name_servers=name_servers, config=config, clock=clock), config
        )

    def _use(self, twin: aio.Producer, config: ProducerConfig | None) -> None:
        super().__init__(twin)
        self._aio = twin
        self.group = twin.group
        self._config = config or ProducerConfig()
        self._soon_lock = threading.Lock()
        self._soon_count = 0
        self._soon_bytes = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.group!r} {self._state} background={self._soon_count}>"

    def start(self) -> None:
        """Connect. Does nothing if it is already running.

        Raises:
            GroupInUse: a producer of the group is running with the same client id.
        """
        self._start(self._aio.start)

    def close(self) -> None:
        """Wait for sends in the background, at most until their timeout, and disconnect."""
        self._close(self._aio.close)

    def add_send_hook(self, hook: SendHook) -> None:
        """Call ``hook`` for every send attempt from now on, on the event loop's thread: it must not block."""
        self._tell(self._aio.add_send_hook, hook)

    def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that can be sent to.

        Raises:
            NoRoute: there are none.
        """
        return self._run(self._aio.fetch_publish_queues, topic)

    def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        sharding_key: str | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Send and wait until the broker has stored the message.

        Args:
            queue: this queue and no other.
            selector: chooses one of the topic's queues; see ``client.core.send.queue_selector``. It is called on the
                event loop's thread and must not block.
            sharding_key: chooses the queue by its hash; overrides the message's own.
            timeout: seconds for the whole call, including all attempts.

        With a queue, selector or sharding key, the send is tried only once: another queue would break the order.

        Raises:
            UsageError: the message can never be sent as it is.
            CometError: not confirmed; ``retryable`` says whether the same send may be retried.
        """
        return self._run(
            self._aio.send,
            message,
            queue=queue,
            selector=selector,
            sharding_key=sharding_key,
            timeout=timeout,
        )

    def send_soon(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        sharding_key: str | None = None,
        timeout: float | None = None,
    ) -> Future[SendResult]:
        """Start a send and return at once; the future gets what ``send`` would return or raise.

        Only network errors are retried, as in RocketMQ's asynchronous send. The message must not be changed until the
        future is done. Callbacks of the future are called on the event loop's thread and must not block. This method
        may be called while an event loop runs; see ``asyncio.wrap_future``.

        Raises:
            TooManyInFlight: the limit on such sends, or on their bytes, is reached; wait for some futures first.
        """

        def start() -> asyncio.Future[SendResult]:
            return self._aio.send_soon(
                message, queue=queue, selector=selector, sharding_key=sharding_key, timeout=timeout
            )

        body_bytes = len(message.body)
        # Also counted here: what the loop's thread has not started yet must be bounded as well.
        self._count_in(body_bytes)
        try:
            future = self._soon(start)
        except BaseException:
            self._count_out(body_bytes)
            raise
        future.add_done_callback(lambda _: self._count_out(body_bytes))
        return future

    def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        sharding_key: str | None = None,
    ) -> None:
        """Send without waiting for a reply: fast, but failures at the broker go unnoticed."""
        self._run(
            self._aio.send_oneway,
            message,
            queue=queue,
            selector=selector,
            sharding_key=sharding_key,
        )

    def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Send several messages of one topic in one request: stored together, in order, in one queue."""
        return self._run(self._aio.send_batch, messages, queue=queue, timeout=timeout)

    def send_all(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> list[SendResult]:
        """Send any number of messages, in order, split into batches that brokers accept; one result per batch.

        Args:
            timeout: seconds for each batch.

        Raises:
            UsageError: one of the messages can never be sent; nothing was sent.
            PartlySent: a batch failed; the error has the results of those before, and the unsent messages.
        """
        # Consumed here: the iterable may be slow, and the event loop must not wait for it.
        return self._run(self._aio.send_all, list(messages), timeout=timeout)

    def request(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        timeout: float | None = None,
    ) -> ReceivedMessage:
        """Send a request and return its reply, which a consumer creates with ``reply_to``.

        Args:
            timeout: seconds for the whole call, including the reply.

        Raises:
            RequestTimedOut: the request was stored, but no reply arrived in time.
            TooManyInFlight: the limit on such requests is reached.
            CometError: the request was not sent; see ``send``.
        """
        return self._run(
            self._aio.request, message, queue=queue, selector=selector, timeout=timeout
        )

    def recall(self, topic: str, recall_handle: str | None, *, timeout: float | None = None) -> str:
        """Cancel a message with a delivery time that is not yet due.

        Args:
            recall_handle: ``SendResult.recall_handle`` of its send, by any producer.
            timeout: seconds for the whole call.

        Returns:
            The id of the message. It will not be delivered, unless its delivery had already started.

        Raises:
            UsageError: the handle is missing, invalid, or from another topic.
            IllegalOperation: the broker says that the time has passed; the message is delivered.
            NoPermission: the broker allows no recalls (RocketMQ 5 unless ``recallMessageEnable=true``).
            CometError: not confirmed; a recall may be repeated.
        """
        return self._run(self._aio.recall, topic, recall_handle, timeout=timeout)

    def _count_in(self, body_bytes: int) -> None:
        config = self._config
        with self._soon_lock:
            if self._soon_count >= config.in_flight_max or (
                self._soon_count and self._soon_bytes + body_bytes > config.in_flight_bytes_max
            ):
                raise TooManyInFlight(
                    f"{self._soon_count} sends with {self._soon_bytes} bytes are under way, "
                    "which is the bound"
                )
            self._soon_count += 1
            self._soon_bytes += body_bytes

    def _count_out(self, body_bytes: int) -> None:
        with self._soon_lock:
            self._soon_count -= 1
            self._soon_bytes -= body_bytes
