"""Sends messages and waits until brokers have stored them. ``sender`` carries out the sends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from cometmq.base.clock import SystemClock
from cometmq.base.errors import CallTimedOut, CometError, TooManyInFlight, UsageError
from cometmq.base.ports import Clock
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.instance.queries import Queries
from cometmq.client.aio.send.recall import recall
from cometmq.client.aio.send.request_reply import wait_for_reply
from cometmq.client.aio.send.running_producer import RunningProducer
from cometmq.client.aio.trace.send_hooks import SendHook
from cometmq.client.aio.trace.trace_hooks import SendTrace, make_dispatcher
from cometmq.client.core.send.batch_splitter import split_batch, travels_alone
from cometmq.client.core.send.prepare import SendRequest, pack_body, prepare, prepare_batch
from cometmq.client.core.send.queue_selector import Selector, wanted_queue
from cometmq.client.core.send.send_result import PartlySent, SendResult, SendStatus
from cometmq.client.core.send.send_retry import (
    FIRST_PAUSE_SECONDS,
    PAUSE_SECONDS_MAX,
    SendMode,
)
from cometmq.client.core.send.topic_queues import TopicQueues
from cometmq.client.errors import ClientClosed, NoRoute
from cometmq.client.producer_config import COMPRESSIONS, ProducerConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.properties import CORRELATION_ID, REPLY_TO_CLIENT, TTL
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import check_group
from cometmq.protocol.command import Command

__all__ = ["PartlySent", "Producer", "SendResult", "SendStatus"]

THREAD_FROM_BYTES: Final = 256 * 1024
"""Larger bodies are compressed in a thread, because they would block the event loop for milliseconds."""

_FORBIDDEN_GROUP: Final = "DEFAULT_PRODUCER"


class Producer(Queries):
    """``async with Producer("orders", name_servers="127.0.0.1:9876") as producer: await producer.send(message)``.

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
        check_group(group)
        if group == _FORBIDDEN_GROUP:
            raise UsageError(f"{group} is the name of nobody's group; choose another")
        self.group = group
        self._config = config or ProducerConfig()
        self._client_config = self._config.client.with_name_servers(name_servers)
        self._clock = clock
        self._send_seconds = self._config.send_timeout_ms / 1000
        self._compress_from_bytes = self._config.compress_from_bytes
        self._compression = COMPRESSIONS[self._config.compression]
        self._bytes_max = self._config.message_bytes_max
        self._background: dict[asyncio.Task[SendResult], int] = {}
        self._background_bytes = 0
        self._send_hooks: list[SendHook] = []
        self._trace = make_dispatcher(
            group, "PRODUCE", self._config.trace, self._client_config, Producer
        )
        if self._trace is not None:
            wall_ms = (clock or SystemClock()).wall_ms
            self._send_hooks.append(SendTrace(self._trace.append, self._trace.topic, wall_ms))
        self._running: RunningProducer | None = None
        self._changing = asyncio.Lock()

    def __repr__(self) -> str:
        state = "running" if self._running is not None else "not running"
        return f"<Producer {self.group!r} {state} background={len(self._background)}>"

    async def start(self) -> None:
        """Connect. Does nothing if it is already running.

        Raises:
            GroupInUse: a producer of the group is running with the same client id.
        """
        async with self._changing:
            if self._running is not None:
                return
            instance = ClientInstance.acquire(self._client_config, clock=self._clock)
            running = RunningProducer(
                self.group, instance, self._config, self._send_hooks, self._check_transaction
            )
            try:
                instance.add_producer(running.role)
                await instance.start()
            except BaseException:
                instance.remove_producer(running.role)
                await instance.release()
                raise
            self._running = running
            if self._trace is not None:
                self._trace.start()

    async def close(self) -> None:
        """Wait for sends in the background, at most until their timeout, and disconnect."""
        if self._background:
            await asyncio.wait(self._background, timeout=self._send_seconds)
            for task in list(self._background):
                task.cancel()
        async with self._changing:
            running, self._running = self._running, None
            if running is None:
                return
            running.requests.close()
            running.instance.remove_producer(running.role)
            await running.instance.release()
            if self._trace is not None:
                await self._trace.close()

    def add_send_hook(self, hook: SendHook) -> None:
        """Call ``hook`` for every send attempt from now on."""
        self._send_hooks.append(hook)

    async def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that can be sent to.

        Raises:
            NoRoute: there are none.
        """
        return list((await self._run().routes.find(topic)).queues)

    async def send(
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
            selector: chooses one of the topic's queues; see ``client.core.send.queue_selector``.
            sharding_key: chooses the queue by its hash; overrides the message's own.
            timeout: seconds for the whole call, including all attempts.

        With a queue, selector or sharding key, the send is tried only once: another queue would break the order.

        Raises:
            UsageError: the message can never be sent as it is.
            CometError: not confirmed; ``retryable`` says whether the same send may be retried.
        """
        return await self._send(message, queue, selector, sharding_key, timeout, SendMode.WAITING)

    def send_soon(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        sharding_key: str | None = None,
        timeout: float | None = None,
    ) -> asyncio.Future[SendResult]:
        """Start a send and return at once; the future gets what ``send`` would return or raise.

        Only network errors are retried, as in RocketMQ's asynchronous send. The message must not be changed until the
        future is done.

        Raises:
            TooManyInFlight: the limit on such sends, or on their bytes, is reached; wait for some futures first.
        """
        self._run()
        config, body_bytes = self._config, len(message.body)
        if len(self._background) >= config.in_flight_max or (
            self._background and self._background_bytes + body_bytes > config.in_flight_bytes_max
        ):
            raise TooManyInFlight(
                f"{len(self._background)} sends with {self._background_bytes} bytes are under way, "
                "which is the bound"
            )
        task = asyncio.get_running_loop().create_task(
            self._send(message, queue, selector, sharding_key, timeout, SendMode.BACKGROUND)
        )
        self._background[task] = body_bytes
        self._background_bytes += body_bytes
        task.add_done_callback(self._background_done)
        return task

    async def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        sharding_key: str | None = None,
    ) -> None:
        """Send without waiting for a reply: fast, but failures at the broker go unnoticed."""
        running = self._run()
        now = running.monotonic()
        topic = running.routes.known(message.topic, now) or await self._find(
            running, message.topic, now + self._send_seconds
        )
        message = _with_key(message, sharding_key)
        target = wanted_queue(topic.topic, topic.queues, message, queue, selector)
        request = self._prepare(running, topic, message)
        if len(message.body) >= self._compress_from_bytes:
            await self._compress(request)
        await running.sender.send_oneway(topic, request, (message,), target)

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Send several messages of one topic in one request: stored together, in order, in one queue."""
        running = self._run()
        now = running.monotonic()
        deadline = now + (self._send_seconds if timeout is None else timeout)
        if not messages:
            raise UsageError("a batch needs at least one message")
        name = messages[0].topic
        topic = running.routes.known(name, now) or await self._find(running, name, deadline)
        request = prepare_batch(
            running.envelope,
            topic.wire_topic,
            messages,
            next_id=running.keys.next,
            born_ms=running.wall_ms(),
            body_bytes_max=self._bytes_max,
        )
        target = wanted_queue(topic.topic, topic.queues, messages[0], queue, None)
        return await running.sender.send(
            topic, request, messages, target, SendMode.WAITING, deadline
        )

    async def send_all(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> list[SendResult]:
        """Send any number of messages, in order, split into batches that brokers accept; one result per batch.

        Args:
            timeout: seconds for each batch.

        Raises:
            UsageError: one of the messages can never be sent; nothing was sent.
            PartlySent: a batch failed; the error has the results of those before, and the unsent messages.
        """
        batches = list(
            split_batch(messages, bytes_max=self._bytes_max, count_max=self._config.batch_count_max)
        )
        results: list[SendResult] = []
        for number, batch in enumerate(batches):
            try:
                if len(batch) == 1 and travels_alone(batch[0]):
                    results.append(await self.send(batch[0], timeout=timeout))
                else:
                    results.append(await self.send_batch(batch, timeout=timeout))
            except CometError as error:
                unsent = [message for rest in batches[number:] for message in rest]
                raise PartlySent(results, unsent) from error
        return results

    async def request(
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
        running = self._run()
        seconds = self._send_seconds if timeout is None else timeout
        deadline = running.monotonic() + seconds
        await self._introduce(running, message.topic, deadline)
        correlation_id, future = running.requests.add()
        try:
            question = msgspec.structs.replace(
                message,
                internal_properties={
                    **message.internal_properties,
                    CORRELATION_ID: correlation_id,
                    REPLY_TO_CLIENT: running.instance.client_id,
                    TTL: str(int(seconds * 1000)),
                },
            )
            left = deadline - running.monotonic()
            await self._send(question, queue, selector, None, left, SendMode.BACKGROUND)
            left = deadline - running.monotonic()
            return await wait_for_reply(future, left, message.topic, seconds)
        finally:
            running.requests.forget(correlation_id)

    async def recall(
        self, topic: str, recall_handle: str | None, *, timeout: float | None = None
    ) -> str:
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
        running = self._run()
        seconds = self._send_seconds if timeout is None else timeout
        trace = None if self._trace is None else self._trace.append
        return await recall(running.instance, self.group, topic, recall_handle, seconds, trace)

    def _for_queries(self) -> ClientInstance:
        return self._run().instance

    def _run(self) -> RunningProducer:
        if self._running is None:
            raise ClientClosed(
                f"producer {self.group!r} does not run; use it inside of `async with`, or call start()"
            )
        return self._running

    async def _send(
        self,
        message: Message,
        queue: MessageQueue | None,
        selector: Selector | None,
        sharding_key: str | None,
        timeout: float | None,
        mode: SendMode,
    ) -> SendResult:
        running = self._run()
        now = running.monotonic()
        deadline = now + (self._send_seconds if timeout is None else timeout)
        topic = running.routes.known(message.topic, now) or await self._find(
            running, message.topic, deadline
        )
        if sharding_key is not None:
            message = _with_key(message, sharding_key)
        if queue is not None or selector is not None or message.sharding_key is not None:
            # Before anything is waited for: the topic has queues now.
            queue = wanted_queue(topic.topic, topic.queues, message, queue, selector)
        request = self._prepare(running, topic, message)
        if len(message.body) >= self._compress_from_bytes:
            await self._compress(request)
        return await running.sender.send(topic, request, (message,), queue, mode, deadline)

    def _prepare(
        self, running: RunningProducer, topic: TopicQueues, message: Message
    ) -> SendRequest:
        now_ms = running.wall_ms()
        return prepare(
            running.envelope,
            topic.wire_topic,
            message,
            message_id=running.keys.next(now_ms),
            born_ms=now_ms,
            body_bytes_max=self._bytes_max,
        )

    async def _compress(self, request: SendRequest) -> None:
        if len(request.body) < THREAD_FROM_BYTES:
            pack_body(request, self._compression)
        else:
            await asyncio.to_thread(pack_body, request, self._compression)

    async def _introduce(self, running: RunningProducer, topic: str, deadline: float) -> None:
        """Before a topic's first request: a broker that does not know this client cannot forward the reply."""
        if topic in running.asked_topics:
            return
        await self._find(running, topic, deadline)
        try:
            async with asyncio.timeout(max(deadline - running.monotonic(), 0)):
                await running.instance.heartbeat()
        except TimeoutError:
            raise CallTimedOut(
                f"the brokers of topic {topic!r} did not answer in time", sent=False
            ) from None
        running.asked_topics.add(topic)

    async def _find(self, running: RunningProducer, topic: str, deadline: float) -> TopicQueues:
        """The topic's queues, at least one."""
        try:
            async with asyncio.timeout(max(deadline - running.monotonic(), 0)):
                return await self._find_on(running, topic, deadline)
        except TimeoutError:
            raise CallTimedOut(f"no route of topic {topic!r} in time", sent=False) from None

    async def _find_on(self, running: RunningProducer, topic: str, deadline: float) -> TopicQueues:
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return await running.routes.find(topic)
            except NoRoute:
                # A topic that was sent to before has lost its master. The next one may be about to come.
                known = running.routes.doubted(topic)
                if known is None or not self._config.retries:
                    raise
                if known.queues:
                    return known
                if running.monotonic() + pause >= deadline:
                    raise
                running.routes.doubt(known)
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)

    def _background_done(self, task: asyncio.Task[SendResult]) -> None:
        self._background_bytes -= self._background.pop(task)

    async def _check_transaction(self, address: str, request: Command) -> None:
        """Request 39: what is the outcome of a half message? Only a ``TransactionProducer`` knows."""
        raise UsageError(f"group {self.group!r} has a producer that sends no transactions")


def _with_key(message: Message, sharding_key: str | None) -> Message:
    if sharding_key is None:
        return message
    return msgspec.structs.replace(message, sharding_key=sharding_key)
