"""Pops: POP_MESSAGE, PEEK_MESSAGE, NOTIFICATION and POLLING_INFO of RocketMQ 5.

A pop that finds nothing waits in ``pop.waiting``. When it is woken it runs once more and, if others were faster, waits
for the rest of its time. Pops in order (``order=true``) are refused.
"""

from __future__ import annotations

from random import randrange
from typing import Final

from cometmq.base.errors import StoreError, UsageError
from cometmq.base.ports import Clock, EventLoop
from cometmq.broker.broker_stats import BrokerStats
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.filters.consumer_filters import ConsumerFilters
from cometmq.broker.filters.message_filter import (
    ALL_MESSAGES,
    MessageFilter,
    no_filter_text,
    tag_filter,
)
from cometmq.broker.pop.check_points import COUNT_MAX
from cometmq.broker.pop.handle import message_offset_info, start_offset_info
from cometmq.broker.pop.picking import Source, pick_order
from cometmq.broker.pop.pop_topics import ANY_QUEUE, retry_topic_v1, retry_topic_v2
from cometmq.broker.pop.pop_waiting import PopWaiting, Waiter
from cometmq.broker.pop.pops import PopRequest, PopResult, Pops
from cometmq.broker.send.store_refusals import refusal_of, refuse_on_slave
from cometmq.broker.topic_creation import TopicCreation
from cometmq.model.flags import is_readable
from cometmq.model.names import RETRY_PREFIX, stored_topic_fault
from cometmq.model.subscription import SQL92, build_subscription, is_tag_type
from cometmq.model.topic import TopicConfig
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Body, Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.pop import (
    NotificationHeader,
    PeekMessageHeader,
    PollingInfoHeader,
    PopMessageHeader,
)
from cometmq.protocol.refusal import Refused
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.times.request_times import RequestTimes
from cometmq.store.meta.topics import TopicTable
from cometmq.store.read.read_results import GetStatus

LATE_MS: Final = 500
"""A pop whose time has been over for so long is not worth an answer with messages: nobody waits for them."""
WAIT_SECONDS_MAX: Final = 600.0
INVISIBLE_MS_MAX: Final = 3 * 86_400_000
_CHANCES: Final = 100
_NO_RESULT: Final = {"popTime": "0", "invisibleTime": "0", "reviveQid": "0", "restNum": "0"}


class PopProcessor:
    """Also owns the pops that wait; ``waiting.arrived`` is to be called for every append."""

    def __init__(
        self,
        *,
        live: LiveConfig,
        pops: Pops,
        topics: TopicTable,
        creation: TopicCreation,
        filters: ConsumerFilters,
        stats: BrokerStats,
        clock: Clock,
        loop: EventLoop,
        reached: Reached,
        times: RequestTimes,
    ) -> None:
        self._times = times
        self._live = live
        self._pops = pops
        self._topics = topics
        self._creation = creation
        self._filters = filters
        self._stats = stats
        self._clock = clock
        self.waiting = PopWaiting(self._rerun, clock=clock, loop=loop, reached=reached)
        self._apply(live.current)
        live.on_change(self._apply)

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.POP_MESSAGE, self.pop)
        dispatcher.add(RequestCode.PEEK_MESSAGE, self.peek)
        dispatcher.add(RequestCode.NOTIFICATION, self.notify)
        dispatcher.add(RequestCode.POLLING_INFO, self.polling_info)

    def pop(self, connection: Connection, command: Command) -> Command | None:
        header = decode_fields(PopMessageHeader, command.ext)
        request = self._admitted(connection, header)
        result = self._pop(request)
        if result.count:
            return self._found(command, request, result)
        return self._hold(connection, command, header, request, result)

    def peek(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(PeekMessageHeader, command.ext)
        if header.max_msg_nums > COUNT_MAX:
            raise _refused(ResponseCode.INVALID_PARAMETER, _count_text(header.max_msg_nums))
        topic = self._topic(connection, header.topic, header.queue_id)
        self._check_group(connection, header.consumer_group)
        request = PopRequest(
            group=header.consumer_group,
            topic=header.topic,
            places=self._places(topic, header.consumer_group, header.queue_id),
            count_max=max(header.max_msg_nums, 1),
            invisible_ms=0,
        )
        try:
            result = self._pops.peek(request)
        except StoreError as error:
            raise _refused(ResponseCode.SYSTEM_ERROR, str(error)) from error
        if result.count:
            return self._found(command, request, result)
        return _reply(command, ResponseCode.PULL_NOT_FOUND, request, result)

    def notify(self, connection: Connection, command: Command) -> Command | None:
        """Whether there is something to pop: at once, or as soon as there is."""
        header = decode_fields(NotificationHeader, command.ext)
        left = self._seconds_left(header.born_time, header.poll_time)
        has_message = self._has_message(connection, header)
        if not has_message and left > 0:
            waiter = self._waiter(connection, command, header, left)
            if self.waiting.park(waiter):
                return None
            return command.reply(ext={"hasMsg": "false", "pollingFull": "true"})
        return command.reply(ext=_notified(has_message))

    def polling_info(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(PollingInfoHeader, command.ext)
        self._topic(connection, header.topic, header.queue_id)
        self._check_group(connection, header.consumer_group)
        number = self.waiting.count(header.consumer_group, header.topic, header.queue_id)
        return command.reply(ext={"pollingNum": str(number)})

    def _admitted(self, connection: Connection, header: PopMessageHeader) -> PopRequest:
        """The checks of a pop in RocketMQ's order, and what it wants. Raises Refused."""
        late_ms = self._clock.wall_ms() - header.born_time - header.poll_time
        if header.poll_time > 0 and late_ms > LATE_MS:
            raise _refused(
                ResponseCode.POLLING_TIMEOUT,
                f"the broker[{self._live.current.identity.ip1}] pop message is timeout too much",
            )
        if header.max_msg_nums > COUNT_MAX:
            raise _refused(ResponseCode.INVALID_PARAMETER, _count_text(header.max_msg_nums))
        if not 0 < header.invisible_time <= INVISIBLE_MS_MAX:
            raise _refused(
                ResponseCode.INVALID_PARAMETER,
                f"expected an invisible time from 1 to {INVISIBLE_MS_MAX} ms, got {header.invisible_time}",
            )
        topic = self._topic(connection, header.topic, header.queue_id)
        self._check_group(connection, header.consumer_group)
        if header.order:
            raise _refused(
                ResponseCode.SYSTEM_ERROR, "pop in order is not available on this broker"
            )
        return PopRequest(
            group=header.consumer_group,
            topic=header.topic,
            places=self._places(topic, header.consumer_group, header.queue_id),
            count_max=max(header.max_msg_nums, 1),
            invisible_ms=header.invisible_time,
            is_from_end=header.init_mode != 0,
            wanted=self._wanted(header.topic, header.exp_type, header.exp),
        )

    def _topic(self, connection: Connection, name: str, queue_id: int) -> TopicConfig:
        # A pop is written to the log, and what is out is read from it; a slave does neither.
        refuse_on_slave(self._live.current.identity)
        if not self._is_readable:
            raise _refused(ResponseCode.NO_PERMISSION, "the broker peeking message is forbidden")
        topic = self._topics.get(name)
        if topic is None:
            raise _refused(
                ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist, apply first please!"
            )
        if not is_readable(topic.perm):
            raise _refused(
                ResponseCode.NO_PERMISSION, f"the topic[{name}] peeking message is forbidden"
            )
        if not ANY_QUEUE <= queue_id < topic.read_queue_nums:
            raise _refused(
                ResponseCode.INVALID_PARAMETER,
                f"queueId[{queue_id}] is illegal, topic:[{name}] "
                f"topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[{connection.peer}]",
            )
        return topic

    def _check_group(self, connection: Connection, name: str) -> None:
        group = self._creation.group(name, connection)
        if group is None:
            raise _refused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group [{name}] does not exist",
            )
        if not group.consume_enable:
            raise _refused(ResponseCode.NO_PERMISSION, f"subscription group no permission, {name}")

    def _places(self, topic: TopicConfig, group: str, queue_id: int) -> list[tuple[str, int]]:
        config = self._live.current.pop
        name = topic.topic_name
        names = [retry_topic_v2(group, name)] if config.is_retry_v2 else []
        if not config.is_retry_v2 or config.is_retry_v1_read:
            names.append(retry_topic_v1(group, name))
        if name.startswith(RETRY_PREFIX):
            # What is popped of a retry topic by its own name is tried again there.
            names = []
        elif fault := stored_topic_fault(names[0]):
            raise _refused(
                ResponseCode.INVALID_PARAMETER, f"no retry topic for this group: {fault}"
            )
        retries = [
            Source(known.topic_name, known.read_queue_nums)
            for known in map(self._topics.get, names)
            if known is not None
        ]
        return pick_order(
            Source(name, topic.read_queue_nums),
            retries,
            queue_id,
            randrange(_CHANCES),
            config.retry_percent,
        )

    def _wanted(self, topic: str, kind: str | None, text: str | None) -> MessageFilter:
        if not text:
            return ALL_MESSAGES
        try:
            if is_tag_type(kind):
                tags_max = self._live.current.filters.tags_max
                return tag_filter(build_subscription(topic, text, tags_max=tags_max))
            if not self._live.current.filters.property_filter:
                raise _refused(ResponseCode.SYSTEM_ERROR, no_filter_text(kind))
            if kind != SQL92:
                raise UsageError(f"expected type TAG or {SQL92}, found {kind!r}")
            return self._filters.compile(text)
        except UsageError as error:
            raise _refused(
                ResponseCode.SUBSCRIPTION_PARSE_FAILED,
                f"parse the consumer's subscription failed: {error}",
                bound=error.bound,
            ) from None

    def _pop(self, request: PopRequest) -> PopResult:
        if len(self._pops.in_flight) >= self._live.current.pop.check_point_max:
            return PopResult(self._clock.wall_ms(), 0)
        try:
            return self._pops.pop(request)
        except Exception as error:
            refusal = refusal_of(error, self._live.current.store.log.message_bytes_max)
            if refusal is None:
                raise
            raise _refused(ResponseCode(refusal.code), refusal.remark) from error

    def _hold(
        self,
        connection: Connection,
        command: Command,
        header: PopMessageHeader,
        request: PopRequest,
        result: PopResult,
    ) -> Command | None:
        left = self._seconds_left(header.born_time, header.poll_time)
        if left <= 0:
            return _reply(command, ResponseCode.POLLING_TIMEOUT, request, result)
        waiter = self._waiter(connection, command, header, left, request.wanted)
        if not self.waiting.park(waiter):
            return _reply(command, ResponseCode.POLLING_FULL, request, result)
        if result.is_scanning:
            self.waiting.wake_soon(waiter)
        return None

    def _waiter(
        self,
        connection: Connection,
        command: Command,
        header: PopMessageHeader | NotificationHeader,
        seconds: float,
        wanted: MessageFilter = ALL_MESSAGES,
    ) -> Waiter:
        return Waiter(
            connection,
            command,
            group=header.consumer_group,
            topic=header.topic,
            queue_id=header.queue_id,
            deadline=self._clock.monotonic() + seconds,
            tags=wanted.tags,
            wants=wanted.by_properties,
        )

    def _rerun(self, waiter: Waiter, is_over: bool) -> None:
        """Run a pop again that waited. What changed meanwhile (topic deleted, settings) is judged anew."""
        connection, command = waiter.connection, waiter.command
        try:
            if command.code == RequestCode.NOTIFICATION:
                header = decode_fields(NotificationHeader, command.ext)
                has_message = self._has_message(connection, header)
                if not has_message and not is_over and self.waiting.park(waiter):
                    return
                reply = command.reply(ext=_notified(has_message))
            else:
                again = self._pop_again(waiter, is_over)
                if again is None:
                    return
                reply = again
        except Refused as refusal:
            reply = command.reply(refusal.code, refusal.remark, ext=refusal.ext)
        connection.send(reply)
        waiter.took(self._times, reply.code)

    def _pop_again(self, waiter: Waiter, is_over: bool) -> Command | None:
        command = waiter.command
        header = decode_fields(PopMessageHeader, command.ext)
        request = self._admitted(waiter.connection, header)
        result = self._pop(request)
        if result.count:
            return self._found(command, request, result)
        if is_over:
            return _reply(command, ResponseCode.POLLING_TIMEOUT, request, result)
        if not self.waiting.park(waiter):
            return _reply(command, ResponseCode.POLLING_FULL, request, result)
        if result.is_scanning:
            self.waiting.wake_soon(waiter)
        return None

    def _has_message(self, connection: Connection, header: NotificationHeader) -> bool:
        topic = self._topic(connection, header.topic, header.queue_id)
        self._check_group(connection, header.consumer_group)
        return self._pops.has_message(
            PopRequest(
                group=header.consumer_group,
                topic=header.topic,
                places=self._places(topic, header.consumer_group, header.queue_id),
                count_max=1,
                invisible_ms=0,
            )
        )

    def _seconds_left(self, born_time: int, poll_time: int) -> float:
        if poll_time <= 0:
            return 0.0
        left_ms = min(born_time + poll_time - self._clock.wall_ms(), poll_time)
        return min(left_ms / 1000, WAIT_SECONDS_MAX)

    def _found(self, command: Command, request: PopRequest, result: PopResult) -> Command:
        self._stats.pulled(request.topic, request.group, result.count, result.size_bytes)
        reply = _reply(command, ResponseCode.SUCCESS, request, result)
        reply.body_parts = list[Body](result.parts)
        return reply

    def _apply(self, config: BrokerConfig) -> None:
        self._is_readable = is_readable(config.topics.permission)
        self.waiting.count_max = config.pop.waiting_max
        self.waiting.of_group_max = config.pop.waiting_of_group_max
        self.waiting.of_connection_max = config.polling.parked_of_connection_max
        self.waiting.bytes_max = config.polling.parked_bytes_max
        if config.identity.is_slave:
            self.waiting.release_all()


def _reply(command: Command, code: ResponseCode, request: PopRequest, result: PopResult) -> Command:
    ext = {
        "popTime": str(result.pop_time),
        "invisibleTime": str(request.invisible_ms),
        "reviveQid": str(result.revive_queue_id),
        "restNum": str(result.rest_count),
        "startOffsetInfo": start_offset_info(result.popped),
        "msgOffsetInfo": message_offset_info(result.popped),
    }
    status = GetStatus.FOUND if result.count else result.status
    return command.reply(code, status.value, ext=ext)


def _notified(has_message: bool) -> dict[str, str]:
    return {"hasMsg": "true" if has_message else "false", "pollingFull": "false"}


def _count_text(count: int) -> str:
    return f"expected at most {COUNT_MAX} messages for one pop, got maxMsgNums {count}"


def _refused(code: ResponseCode, text: str, *, bound: str = "") -> Refused:
    """As RocketMQ: the fields of the reply are there, and say nothing."""
    return Refused(code, text, ext=dict(_NO_RESULT), bound=bound)
