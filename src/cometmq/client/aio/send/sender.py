"""Carries out sends: one attempt after another, each to the queue that the rules choose.

The path of a send that succeeds at once, which is nearly every send, is kept short: no task, no timer, and no context
object unless there are hooks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from cometmq.base.errors import CallTimedOut, CometError, RemotingError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.send.publish_routes import PublishRoutes
from cometmq.client.aio.trace.send_hooks import SendContext, SendHook, run_after, run_before
from cometmq.client.core.send.fault_tracker import SERIES, FaultTracker
from cometmq.client.core.send.prepare import SendRequest
from cometmq.client.core.send.send_frame import SendFrames
from cometmq.client.core.send.send_result import SendResult, SendStatus, send_result
from cometmq.client.core.send.send_retry import (
    FIRST_PAUSE_SECONDS,
    PAUSE_SECONDS_MAX,
    RetryRules,
    SendMode,
)
from cometmq.client.core.send.topic_queues import TopicQueues
from cometmq.client.errors import NoRoute
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.protocol.command import Command
from cometmq.protocol.send_reply import Stored
from cometmq.remoting.connection import Connection

logger = logging.getLogger("cometmq.client")


class Sender:
    """The sends of one producer."""

    def __init__(
        self,
        group: str,
        instance: ClientInstance,
        routes: PublishRoutes,
        config: ProducerConfig,
        hooks: Sequence[SendHook],
    ) -> None:
        self._group = group
        self._instance = instance
        self._call = instance.call
        self._ready = instance.ready
        self._frames = None if instance.has_credentials else SendFrames()
        self._broker_address = instance.broker_address
        self._monotonic = instance.clock.monotonic
        self._routes = routes
        self._hooks = hooks
        self._rules = RetryRules(
            retries=config.retries,
            background_retries=config.background_retries,
            codes=config.retried_codes,
        )
        self._attempt_seconds_max = (
            config.attempt_timeout_ms / 1000 if config.attempt_timeout_ms > 0 else float("inf")
        )
        self._send_seconds = config.send_timeout_ms / 1000
        self._retry_not_stored_ok = config.retry_another_broker_when_not_stored_ok
        self._faults = (
            FaultTracker(SERIES[config.latency_fault_series]) if config.latency_fault else None
        )

    async def send(
        self,
        topic: TopicQueues,
        request: SendRequest,
        messages: Sequence[Message],
        queue: MessageQueue | None,
        mode: SendMode,
        deadline: float,
    ) -> SendResult:
        """Send and wait for the broker's reply, with retries where the rules allow it.

        Args:
            queue: this one and no other; None lets the rules choose.
            deadline: monotonic time at which the whole call ends.
        """
        attempts_left = self._rules.attempts(mode, is_queue_given=queue is not None)
        pause = FIRST_PAUSE_SECONDS
        failed_broker: str | None = None
        weakly_stored: SendResult | None = None
        while True:
            attempts_left -= 1
            error: CometError | None = None
            target = queue
            try:
                target = target or self._choose(topic, failed_broker)
                timeout = min(deadline - self._monotonic(), self._attempt_seconds_max)
                begun = self._begin(target, request, timeout)
                if begun is None:
                    result = await self._attempt(topic, target, request, messages, mode, timeout)
                else:
                    address, connection, opaque, reply = begun
                    try:
                        answer = await reply
                    except BaseException:
                        # A cancelled call is still waited for.
                        connection.forget(opaque)
                        raise
                    result = send_result(answer, address, target, request.message_id)
                if (
                    result.status is SendStatus.SEND_OK
                    or not self._retry_not_stored_ok
                    or mode is not SendMode.WAITING
                ):
                    return result
                weakly_stored = result
            except CometError as failure:
                error = failure
                if failure.route_is_stale:
                    self._routes.doubt(topic)
                has_other = target is not None and topic.has_other_broker(target.broker_name)
                is_stuck = queue is not None or not has_other
                if is_stuck and self._rules.is_waited_out(failure, mode):
                    attempts_left += 1
                    await asyncio.sleep(min(pause, max(deadline - self._monotonic(), 0)))
                    pause = min(2 * pause, PAUSE_SECONDS_MAX)
                elif not self._rules.is_retried(failure, mode, has_other_broker=has_other):
                    attempts_left = 0
            if attempts_left > 0:
                failed_broker = None if target is None else target.broker_name
                await self._look_again(topic, deadline)
            if attempts_left <= 0 or self._monotonic() >= deadline:
                # Stored without confirmation is still stored, whatever happened to the later attempts.
                if weakly_stored is not None:
                    return weakly_stored
                assert error is not None, "an attempt gives a result or an error"
                raise error

    async def send_oneway(
        self,
        topic: TopicQueues,
        request: SendRequest,
        messages: Sequence[Message],
        queue: MessageQueue | None,
    ) -> None:
        """Pass the message to the network; only waits while connecting or while the broker does not read."""
        target = queue or self._choose(topic, None)
        address = self._broker_address(target.broker_name) or await self._find(
            topic, target, self._send_seconds
        )
        command = request.to(target)
        if not self._hooks:
            await self._instance.oneway(address, command)
            return
        context = self._context(request, messages, target, address, SendMode.ONEWAY)
        started = self._monotonic()
        run_before(self._hooks, context)
        try:
            await self._instance.oneway(address, command)
        except BaseException as error:
            context.error = error
            raise
        finally:
            context.elapsed_ms = (self._monotonic() - started) * 1000
            run_after(self._hooks, context)

    def _begin(
        self, target: MessageQueue, request: SendRequest, timeout: float
    ) -> tuple[str, Connection, int, asyncio.Future[Command | Stored]] | None:
        """The usual attempt, begun without a coroutine: a plain message, nobody watches, and the connection is open.

        None if it is not like that; then ``_attempt`` does the same for every kind of attempt.
        """
        if (
            self._frames is None
            or not request.is_plain
            or self._hooks
            or self._faults is not None
            or timeout <= 0
        ):
            return None
        address = self._broker_address(target.broker_name)
        connection = None if address is None else self._ready(address)
        if address is None or connection is None:
            return None
        opaque, reply = connection.expect_reply(request.code, timeout)
        head = self._frames.head(request, target, opaque)
        if head is None:
            connection.forget(opaque)
            return None
        connection.send_encoded(head, request.body)
        return address, connection, opaque, reply

    async def _attempt(
        self,
        topic: TopicQueues,
        target: MessageQueue,
        request: SendRequest,
        messages: Sequence[Message],
        mode: SendMode,
        timeout: float,
    ) -> SendResult:
        if timeout <= 0:
            raise CallTimedOut("no time is left for the send", sent=False)
        address = self._broker_address(target.broker_name) or await self._find(
            topic, target, timeout
        )
        command = request.to(target)
        if self._hooks or self._faults is not None:
            return await self._watched(request, command, messages, target, address, mode, timeout)
        reply = await self._call(address, command, timeout)
        return send_result(reply, address, target, request.message_id)

    async def _watched(
        self,
        request: SendRequest,
        command: Command,
        messages: Sequence[Message],
        target: MessageQueue,
        address: str,
        mode: SendMode,
        timeout: float,
    ) -> SendResult:
        """An attempt with hooks around it, recording its latency."""
        context = self._context(request, messages, target, address, mode)
        started = self._monotonic()
        run_before(self._hooks, context)
        try:
            reply = await self._call(address, command, timeout)
            context.result = send_result(reply, address, target, request.message_id)
            return context.result
        except BaseException as error:
            context.error = error
            raise
        finally:
            now = self._monotonic()
            context.elapsed_ms = (now - started) * 1000
            self._note_latency(target.broker_name, context, now * 1000)
            run_after(self._hooks, context)

    def _note_latency(self, broker_name: str, context: SendContext, now_ms: float) -> None:
        if self._faults is None:
            return
        if isinstance(context.error, CometError):
            self._faults.failed(
                broker_name,
                context.elapsed_ms,
                now_ms,
                is_reachable=not isinstance(context.error, RemotingError),
            )
        elif context.error is None:
            self._faults.answered(broker_name, context.elapsed_ms, now_ms)

    def _choose(self, topic: TopicQueues, failed_broker: str | None) -> MessageQueue:
        if not topic.queues:
            # From another send's route refresh a moment ago.
            raise NoRoute(f"topic {topic.topic!r} has no writable queue on any master")
        if self._faults is None:
            return topic.robin.select(topic.queues, failed_broker)
        now_ms = self._monotonic() * 1000
        return self._faults.select(topic.queues, topic.robin, now_ms, failed_broker)

    async def _look_again(self, topic: TopicQueues, deadline: float) -> None:
        """Refresh the route if the last attempt made it doubtful."""
        if self._routes.known(topic.topic, self._monotonic()) is not None:
            return
        try:
            async with asyncio.timeout(max(deadline - self._monotonic(), 0)):
                await self._routes.find(topic.topic)
        except (CometError, TimeoutError) as error:
            # Use the known queues: their brokers may be back already.
            logger.debug("no fresh route topic=%s reason=%s", topic.topic, error)

    async def _find(self, topic: TopicQueues, target: MessageQueue, timeout: float) -> str:
        wired = MessageQueue(
            broker_name=target.broker_name, queue_id=target.queue_id, topic=topic.wire_topic
        )
        try:
            async with asyncio.timeout(timeout):
                return await self._instance.find_master(wired)
        except TimeoutError:
            raise CallTimedOut(
                f"broker {target.broker_name!r} was not found in {timeout:g} s", sent=False
            ) from None

    def _context(
        self,
        request: SendRequest,
        messages: Sequence[Message],
        target: MessageQueue,
        address: str,
        mode: SendMode,
    ) -> SendContext:
        return SendContext(
            group=self._group,
            messages=messages,
            message_id=request.message_id,
            queue=target,
            address=address,
            mode=mode,
        )
