"""Delivers messages to a listener: the group's queues are shared out, pulled, consumed and committed by itself.

    async def handle(message: ReceivedMessage) -> None: ...

    async with PushConsumer("billing", listener=handle, name_servers="127.0.0.1:9876") as consumer:
        consumer.subscribe("Orders", "paid || refunded")

Next on a message's way: ``rebalancer`` and ``queue_work`` take queues, as ``core.consume.member`` decides, ``puller``
fills them, ``concurrent_listener`` or ``orderly_listener`` calls the user, ``offsets`` keeps the positions.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Sequence
from typing import Final

from cometmq.base.clock import SystemClock
from cometmq.base.errors import UsageError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.instance.queries import Queries
from cometmq.client.aio.offsets.broker_offsets import BrokerOffsets, OffsetStore
from cometmq.client.aio.offsets.local_offsets import LocalOffsets
from cometmq.client.aio.push.listener_call import BatchListener, Listener, ListenerCall
from cometmq.client.aio.push.running_consumer import RunningConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.aio.trace.consume_hooks import ConsumeHook
from cometmq.client.aio.trace.trace_hooks import ConsumeTrace, make_dispatcher
from cometmq.client.consumer_config import CONCURRENT_RETRIES_MAX, PushConsumerConfig
from cometmq.client.core.consume.outcome import BadOutcome, judge
from cometmq.client.core.namespace import wrap
from cometmq.client.errors import ClientClosed, NoRoute
from cometmq.model.consumption import ConsumeFromWhere, ConsumeType, MessageModel
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.properties import RETRY_TOPIC
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import RETRY_PREFIX, check_group, check_topic, retry_topic
from cometmq.model.subscription import Expression, SubscriptionData, is_tag_type, subscription_of
from cometmq.protocol.bodies.heartbeat import CheckClientConfigBody
from cometmq.protocol.bodies.running import (
    ConsumeDirectlyResult,
    ConsumeResult,
    ConsumerRunningInfo,
)
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import error_for

logger = logging.getLogger("cometmq.client")

SWEEPS_PER_TIMEOUT: Final = 15
WORKERS_END_SECONDS: Final = 1.0
JAVA_INT_MAX: Final = 2**31 - 1


class PushConsumer(Queries):
    """A member of a consumer group.

    Args:
        listener: called with each message, as a task if it is a coroutine function, else in a thread. It may return an
            ``Outcome``; returning nothing means consumed, an exception means: deliver again later.
        batch_listener: instead, called with up to ``consume_batch_max`` messages.
        orderly: messages of a queue one after the other; a failed one holds its queue up until it succeeds.
        name_servers: in place of those in ``config``.

    Raises:
        UsageError: not exactly one listener, or a group name that cannot be used.
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
        check_group(group)
        if (listener is None) == (batch_listener is None):
            raise UsageError("give a push consumer either a listener or a batch_listener")
        self.config = (config or PushConsumerConfig()).with_name_servers(name_servers)
        self.is_orderly = orderly
        self.hooks: list[ConsumeHook] = []
        """For trace and telemetry: called around each call of the listener."""
        self._trace = make_dispatcher(
            group, "CONSUME", self.config.trace, self.config.client, Producer
        )
        if self._trace is not None:
            hook = ConsumeTrace(self._trace.append, self._trace.topic, SystemClock().wall_ms)
            self.hooks.append(hook)
        self._user_group = group
        self._call = ListenerCall(
            group,
            listener=listener,
            batch_listener=batch_listener,
            is_orderly=orderly,
            hooks=self.hooks,
        )
        self._expressions: dict[str, Expression] = {}
        self._subscriptions: dict[str, SubscriptionData] = {}
        self._is_running = asyncio.Event()
        self._is_running.set()
        self._is_changed = False
        self._is_closing = False
        self._instance: ClientInstance | None = None
        self._parts: RunningConsumer | None = None

    # The user's side.

    def subscribe(self, topic: str, expression: Expression = "*") -> None:
        """Want messages of a topic: all, those with tags like ``a || b``, those that meet a condition ``Sql(...)``, or
        those that a ``FilterFunction(...)`` of the broker wants.

        Again with another expression replaces the first. While running it takes effect within moments.

        Raises:
            UsageError: the topic's name or the expression cannot be used.
        """
        check_topic(topic)
        subscription_of(topic, expression)
        self._expressions[topic] = expression
        if self._instance is not None:
            self._subscribe_now(self._instance, topic, expression)
            self._subscriptions_changed()

    def unsubscribe(self, topic: str) -> None:
        """Want no more messages of a topic. Those in work are finished first."""
        self._expressions.pop(topic, None)
        if self._instance is not None:
            self._subscriptions.pop(self._instance.wrap_topic(topic), None)
            self._subscriptions_changed()

    def suspend(self) -> None:
        """Pull no more until ``resume``. What was pulled before is still delivered."""
        self._is_running.clear()

    def resume(self) -> None:
        self._is_running.set()

    @property
    def client_id(self) -> str:
        """Who it is in its group. Raises ClientClosed when it does not run."""
        return self._required().client_id

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that this consumer has now, with their topics as on the wire."""
        return sorted(self._parts.rebalancer.held) if self._parts is not None else []

    async def start(self) -> None:
        """Join the group and begin to consume.

        Raises:
            UsageError: it runs already, or its group is in use with the same client id.
            BrokerReplyError: a broker cannot filter by a condition that is subscribed.
            CometError: no name server could be asked.
        """
        if self._instance is not None:
            raise UsageError(f"consumer of group {self._user_group!r} is started already")
        instance = ClientInstance.acquire(
            self.config.client, has_stable_id=self.config.is_broadcast
        )
        self._instance = instance
        try:
            await instance.start()
            for topic, expression in self._expressions.items():
                self._subscribe_now(instance, topic, expression)
            if not self.config.is_broadcast:
                retry = retry_topic(self.group)
                self._subscriptions[retry] = subscription_of(
                    retry, "*", version=instance.clock.wall_ms()
                )
            await self._find_routes(instance)
            parts = RunningConsumer(
                instance,
                self.group,
                config=self.config,
                is_orderly=self.is_orderly,
                call=self._call,
                offsets=await self._open_offsets(instance),
                subscriptions=self._subscriptions,
                is_running=self._is_running,
                before_rebalance=self._tell_changes,
            )
            instance.add_consumer(self)
        except BaseException:
            self._instance = None
            await instance.release()
            raise
        self._parts = parts
        try:
            await instance.heartbeat()
            await self._check_conditions(instance)
            parts.start()
            if self._trace is not None:
                self._trace.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Leave the group. Listeners may end what they are at (``await_termination_ms``), and exactly what was consumed
        is committed, so that the others of the group go on without loss or repetition."""
        instance, parts = self._instance, self._parts
        if instance is None or self._is_closing:
            return
        self._is_closing = True
        try:
            if parts is not None:
                await parts.close(self.config.await_termination_ms / 1000)
        finally:
            instance.remove_consumer(self)
            self._instance = self._parts = None
            self._subscriptions.clear()
            self._is_closing = False
            await instance.release()
            if self._trace is not None:
                await self._trace.close()

    def __repr__(self) -> str:
        state = "new or closed" if self._parts is None else f"queues={len(self.queues)}"
        return f"<PushConsumer {self._user_group!r} topics={sorted(self._expressions)} {state}>"

    # What the instance asks of a role.

    @property
    def group(self) -> str:
        return wrap(self.config.client.namespace, self._user_group)

    @property
    def consume_type(self) -> ConsumeType:
        return ConsumeType.CONSUME_PASSIVELY

    @property
    def message_model(self) -> MessageModel:
        return MessageModel(self.config.message_model)

    @property
    def consume_from(self) -> ConsumeFromWhere:
        return ConsumeFromWhere(self.config.consume_from_where)

    @property
    def retries_max(self) -> int | None:
        # Whoever consumes in order counts retries itself.
        if self.is_orderly or self.config.is_broadcast:
            return None
        times = self.config.max_reconsume_times
        return CONCURRENT_RETRIES_MAX if times < 0 else times

    def subscriptions(self) -> list[SubscriptionData]:
        return list(self._subscriptions.values())

    def topics(self) -> Collection[str]:
        return list(self._subscriptions)

    def rebalance_soon(self) -> None:
        if self._parts is not None:
            self._parts.rebalance_task.soon()

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        if self._parts is None:
            return
        wanted = {queue: offset for queue, offset in offsets.items() if queue.topic == topic}
        await self._parts.rebalancer.reset(wanted)

    def positions(self, topic: str) -> dict[MessageQueue, int]:
        if self._parts is None:
            return {}
        return {
            queue: held.process.commit_offset
            for queue, held in self._parts.rebalancer.held.items()
            if queue.topic == topic
        }

    def running_info(self) -> ConsumerRunningInfo:
        return ConsumerRunningInfo() if self._parts is None else self._parts.describe()

    async def consume_directly(
        self, message: ReceivedMessage, broker_name: str
    ) -> ConsumeDirectlyResult:
        instance = self._required()
        if message.topic.startswith(RETRY_PREFIX) and (
            origin := message.properties.get(RETRY_TOPIC)
        ):
            message.topic = instance.unwrap_topic(origin)
        result = ConsumeDirectlyResult(order=self.is_orderly)
        started = time.monotonic()
        try:
            verdict = judge(await self._call.call_plainly(message), 1)
            result.consume_result = (
                ConsumeResult.CR_SUCCESS if verdict.consumed_count else ConsumeResult.CR_LATER
            )
        except BadOutcome as error:
            result.consume_result = ConsumeResult.CR_RETURN_NULL
            result.remark = str(error)
        except Exception as error:
            logger.warning("listener failed group=%s", self._user_group, exc_info=error)
            result.consume_result = ConsumeResult.CR_THROW_EXCEPTION
            result.remark = f"{type(error).__name__}: {error}"
        result.spent_time_mills = int((time.monotonic() - started) * 1000)
        return result

    # Inside.

    def _for_queries(self) -> ClientInstance:
        return self._required()

    def _required(self) -> ClientInstance:
        if self._instance is None:
            raise ClientClosed(f"consumer of group {self._user_group!r} does not run; start it")
        return self._instance

    async def _open_offsets(self, instance: ClientInstance) -> OffsetStore:
        if not self.config.is_broadcast:
            return BrokerOffsets(instance, self.group)
        local = LocalOffsets(instance.client_id, self.group, self.config.local_offset_directory)
        await local.load()
        return local

    def _subscribe_now(self, instance: ClientInstance, topic: str, expression: Expression) -> None:
        wire_topic = instance.wrap_topic(topic)
        before = self._subscriptions.get(wire_topic)
        version = instance.clock.wall_ms()
        if before is not None:
            # A broker keeps the older one when the versions are equal.
            version = max(version, before.sub_version + 1)
        self._subscriptions[wire_topic] = subscription_of(wire_topic, expression, version=version)

    def _subscriptions_changed(self) -> None:
        self._is_changed = True
        self.rebalance_soon()

    async def _find_routes(self, instance: ClientInstance) -> None:
        """A heartbeat only goes to brokers of known routes."""
        for topic in self.topics():
            try:
                await instance.route(topic)
            except NoRoute as error:
                if not topic.startswith(RETRY_PREFIX):
                    logger.warning("topic is not there yet group=%s reason=%s", self.group, error)

    async def _check_conditions(self, instance: ClientInstance) -> None:
        for subscription in self.subscriptions():
            if is_tag_type(subscription.expression_type):
                continue
            route = instance.known_route(subscription.topic)
            body = CheckClientConfigBody(
                client_id=instance.client_id,
                group=self.group,
                namespace=instance.config.namespace or None,
                subscription_data=subscription,
            ).encode()
            for data in route.broker_datas if route is not None else ():
                address = instance.broker_address(data.broker_name)
                if address is None:
                    continue
                request = Command(RequestCode.CHECK_CLIENT_CONFIG, body=body)
                reply = await instance.call(address, request, instance.config.call_seconds)
                if reply.code != ResponseCode.SUCCESS:
                    raise error_for(reply, address)

    async def _tell_changes(self) -> None:
        """Before queues are shared out: brokers refuse pulls by a subscription they have not heard of."""
        instance = self._instance
        if instance is not None and self._is_changed:
            self._is_changed = False
            await self._find_routes(instance)
            await instance.heartbeat()
