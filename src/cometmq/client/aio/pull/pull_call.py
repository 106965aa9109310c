"""One pull: choose master or slave, call, decode, check tags, determine where to continue.

All consumers pull through this. For each queue it remembers which broker the last reply suggested. If a broker cannot
be reached, another of its name is asked at once: a slave has the same messages at the same offsets.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from cometmq.base.errors import CometError, RemotingError
from cometmq.client.core.broker_order import Place
from cometmq.client.errors import NoRoute
from cometmq.model.flags import PullFlag
from cometmq.model.ids import MASTER_ID
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.properties import MAX_OFFSET, MIN_OFFSET
from cometmq.model.messages.received_message import ReceivedMessage, decode_messages
from cometmq.model.route import TopicRoute
from cometmq.model.subscription import SubscriptionData, is_tag_type
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.pull import PullMessageHeader, PullMessageReply
from cometmq.protocol.reply_errors import error_for

logger = logging.getLogger("cometmq.client")

ANSWER_SECONDS: Final = 10.0
"""How long a reply may take beyond the time that the broker may hold the pull."""

SWEEP_SECONDS: Final = 5.0
"""RocketMQ's broker notices the end of a held pull only at its next sweep."""

LITE_PULL_VERSION: Final = 413
"""From RocketMQ 5.0.0 on, brokers have a separate request code for lite pulls."""

NOT_THERE_SECONDS: Final = 1.0
"""How long a consumer waits before it asks a slave again for messages that the slave does not have."""

# As plain integers: an enum's operators cost more than the rest of a request.
_COMMIT_OFFSET: Final = int(PullFlag.COMMIT_OFFSET)
_SUSPEND: Final = int(PullFlag.SUSPEND)
_SUBSCRIPTION: Final = int(PullFlag.SUBSCRIPTION)
_CLASS_FILTER: Final = int(PullFlag.CLASS_FILTER)
_LITE_PULL: Final = int(PullFlag.LITE_PULL)


class PullStatus(StrEnum):
    """What a pull found: messages, nothing yet, nothing that matches, or an offset that the queue does not have."""

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


_STATUS: Final[dict[int, PullStatus]] = {
    ResponseCode.SUCCESS: PullStatus.FOUND,
    ResponseCode.PULL_NOT_FOUND: PullStatus.NO_NEW_MSG,
    ResponseCode.PULL_RETRY_IMMEDIATELY: PullStatus.NO_MATCHED_MSG,
    ResponseCode.PULL_OFFSET_MOVED: PullStatus.OFFSET_ILLEGAL,
}


def status_of(reply: Command, address: str) -> PullStatus:
    """What the reply to a pull says. Raises BrokerReplyError when the broker refused."""
    status = _STATUS.get(reply.code)
    if status is None:
        raise error_for(reply, address)
    return status


@dataclass(frozen=True, slots=True, kw_only=True)
class PullResult:
    """``next_offset`` is where to continue, whatever the status. FOUND without messages: none had a matching tag."""

    status: PullStatus
    messages: list[ReceivedMessage]
    next_offset: int
    min_offset: int
    max_offset: int


class Brokers(Protocol):
    """The part of ``ClientInstance`` that a pull needs."""

    def read_place(self, broker_name: str, suggested_id: int) -> Place | None:
        """Where to read: the suggested broker, otherwise any other of that name."""
        ...

    def unreachable(self, address: str) -> None:
        """Read elsewhere for a while, if possible."""
        ...

    async def route(self, topic: str, *, fresh: bool = False) -> TopicRoute: ...

    async def call(self, address: str, command: Command, timeout: float) -> Command: ...

    def broker_version(self, broker_name: str) -> int:
        """The version from the broker's last heartbeat reply; 0 while there was none."""
        ...

    def unwrap_topic(self, name: str) -> str:
        """A topic name without the client's namespace."""
        ...


class PullCalls:
    """The pulls of one consumer group of a client."""

    def __init__(self, brokers: Brokers, group: str) -> None:
        self._brokers = brokers
        self._group = group
        self._suggested: dict[MessageQueue, int] = {}

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        subscription: SubscriptionData,
        *,
        count_max: int = 32,
        wait_seconds: float = 0.0,
        commit_offset: int | None = None,
        send_subscription: bool = True,
        is_lite: bool = False,
        timeout: float | None = None,
    ) -> PullResult:
        """Up to ``count_max`` messages from ``offset`` on.

        Args:
            wait_seconds: if there is nothing, let the broker hold the call for this long until a message arrives.
            commit_offset: the group's position, committed with the pull (not sent to a slave).
            send_subscription: filter by ``subscription`` as given; otherwise by the one from heartbeats, of which the
                broker must know this version.
            is_lite: mark it as the pull of a lite pull consumer.
            timeout: seconds for the whole call; by default a while longer than the broker may hold it.

        Raises:
            NoRoute: no address of the queue's broker is known.
            BrokerReplyError: the broker refused.
            RemotingError: the network call failed.
            BadRecord, RemoteProtocolError: the reply cannot be decoded.
        """
        flags = _SUSPEND if wait_seconds > 0 else 0
        if send_subscription:
            flags |= _SUBSCRIPTION
        if subscription.class_filter_mode:
            flags |= _CLASS_FILTER
        code = RequestCode.PULL_MESSAGE
        if is_lite:
            flags |= _LITE_PULL
            if self._brokers.broker_version(queue.broker_name) >= LITE_PULL_VERSION:
                code = RequestCode.LITE_PULL_MESSAGE
        # A tag filter sent with the pull needs no version; Java's clients send none then.
        has_version = not send_subscription or not is_tag_type(subscription.expression_type)
        header = PullMessageHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=count_max,
            sys_flag=flags,
            commit_offset=commit_offset or 0,
            suspend_timeout_millis=int(wait_seconds * 1000),
            subscription=subscription.sub_string if send_subscription else None,
            sub_version=subscription.sub_version if has_version else 0,
            expression_type=subscription.expression_type,
            broker_name=queue.broker_name,
        )
        if timeout is None:
            timeout = ANSWER_SECONDS + (wait_seconds + SWEEP_SECONDS if wait_seconds > 0 else 0)
        reply, place = await self._ask(queue, code, header, timeout, commit_offset)
        status = status_of(reply, place.address)
        position = decode_fields(PullMessageReply, reply.ext)
        self._suggested[queue] = position.suggest_which_broker_id
        if (
            status is PullStatus.NO_MATCHED_MSG
            and position.next_begin_offset <= offset
            and wait_seconds > 0
            and not place.is_master
        ):
            # The slave does not have the offset. RocketMQ's does not hold such a pull, so it would come back at once.
            await asyncio.sleep(min(wait_seconds, NOT_THERE_SECONDS))
        messages: list[ReceivedMessage] = []
        if status is PullStatus.FOUND:
            messages = self._messages(queue, reply, position, subscription)
        return PullResult(
            status=status,
            messages=messages,
            next_offset=position.next_begin_offset,
            min_offset=position.min_offset,
            max_offset=position.max_offset,
        )

    def forget(self, queue: MessageQueue) -> None:
        """The queue is given up; forget it."""
        self._suggested.pop(queue, None)

    def _messages(
        self,
        queue: MessageQueue,
        reply: Command,
        position: PullMessageReply,
        subscription: SubscriptionData,
    ) -> list[ReceivedMessage]:
        # Java's client puts both into every message; users compute their lag from them.
        bounds = {MIN_OFFSET: str(position.min_offset), MAX_OFFSET: str(position.max_offset)}
        messages = decode_messages(reply.body, queue.broker_name, added=bounds)
        # The broker compares hashes; two tags may share one.
        if subscription.tags_set and not subscription.class_filter_mode:
            wanted = set(subscription.tags_set)
            messages = [message for message in messages if message.tags in wanted]
        topic = self._brokers.unwrap_topic(queue.topic)
        if topic != queue.topic:
            for message in messages:
                message.topic = topic
        return messages

    async def _ask(
        self,
        queue: MessageQueue,
        code: RequestCode,
        header: PullMessageHeader,
        timeout: float,
        commit_offset: int | None,
    ) -> tuple[Command, Place]:
        """The reply of the place that the queue is read from, or of another one if that does not answer."""
        place = await self._place(queue)
        try:
            reply = await self._call(place, code, header, timeout, commit_offset)
        except RemotingError as error:
            if not error.route_is_stale:
                raise
            self._brokers.unreachable(place.address)
            other = await self._elsewhere(queue)
            if other is None or other.address == place.address:
                raise
            logger.info(
                "reading elsewhere queue=%s from=%s to=%s reason=%s",
                queue,
                place.address,
                other.address,
                error,
            )
            place = other
            reply = await self._call(place, code, header, timeout, commit_offset)
        return reply, place

    async def _call(
        self,
        place: Place,
        code: RequestCode,
        header: PullMessageHeader,
        timeout: float,
        commit_offset: int | None,
    ) -> Command:
        ext = encode_fields(header)
        if commit_offset is not None and place.is_master:
            ext["sysFlag"] = str(header.sys_flag | _COMMIT_OFFSET)
        return await self._brokers.call(place.address, Command(code, ext), timeout)

    async def _place(self, queue: MessageQueue) -> Place:
        suggested = self._suggested.get(queue, MASTER_ID)
        found = self._brokers.read_place(queue.broker_name, suggested)
        if found is None:
            await self._brokers.route(queue.topic, fresh=True)
            found = self._brokers.read_place(queue.broker_name, suggested)
        if found is None:
            raise NoRoute(f"no route of topic {queue.topic!r} names broker {queue.broker_name!r}")
        return found

    async def _elsewhere(self, queue: MessageQueue) -> Place | None:
        """Where to read from now on, by the route of the moment."""
        try:
            await self._brokers.route(queue.topic, fresh=True)
        except CometError as error:
            logger.debug("no fresh route topic=%s reason=%s", queue.topic, error)
        return self._brokers.read_place(queue.broker_name, self._suggested.get(queue, MASTER_ID))
