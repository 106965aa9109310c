"""What became of a message in each group of its topic, as far as positions and subscriptions tell."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cometmq.admin.calls import Calls
from cometmq.admin.groups.connections import Connections
from cometmq.admin.groups.progress import Progress
from cometmq.base.errors import CometError
from cometmq.client.errors import NoRoute
from cometmq.model.consumption import ConsumeType, MessageModel
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.subscription import ALL, SubscriptionData, is_tag_type
from cometmq.protocol.bodies.connection import ConsumerConnection
from cometmq.protocol.bodies.group import GroupList
from cometmq.protocol.bodies.stats import ConsumeStats
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.headers.admin import QueryTopicConsumeByWhoHeader
from cometmq.protocol.reply_errors import ConsumerNotOnline


class TrackType(StrEnum):
    """RocketMQ's words. PULL: the group pulls by itself, so positions tell nothing."""

    CONSUMED = "CONSUMED"
    CONSUMED_BUT_FILTERED = "CONSUMED_BUT_FILTERED"
    PULL = "PULL"
    NOT_CONSUME_YET = "NOT_CONSUME_YET"
    NOT_ONLINE = "NOT_ONLINE"
    CONSUME_BROADCASTING = "CONSUME_BROADCASTING"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTrack:
    """``reason`` says why the type is UNKNOWN or NOT_ONLINE."""

    group: str
    track_type: TrackType
    reason: str = ""


class Fates:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._connections = Connections(calls)
        self._progress = Progress(calls)

    async def tracks(self, message: ReceivedMessage) -> list[MessageTrack]:
        """One for each group, by name. Raises NoRoute, PartialFailure."""
        header = QueryTopicConsumeByWhoHeader(topic=message.topic)

        async def groups_at(address: str) -> list[str]:
            code = RequestCode.QUERY_TOPIC_CONSUME_BY_WHO
            return (await self._calls.table(address, code, GroupList, header)).group_list

        masters = await self._calls.masters_of(message.topic)
        told = await self._calls.fan_out.each(masters.values(), groups_at)
        told.raise_failed(f"asking who consumes topic {message.topic!r}")
        groups = sorted({name for names in told.values() for name in names})

        async def track(group: str) -> MessageTrack:
            return await self._track(message, group, list(masters.values()))

        found = await self._calls.fan_out.each(groups, track)
        unknown = {
            group: MessageTrack(group=group, track_type=TrackType.UNKNOWN, reason=str(error))
            for group, error in found.failed.items()
        }
        return [found.done.get(group) or unknown[group] for group in groups]

    async def _track(
        self, message: ReceivedMessage, group: str, addresses: list[str]
    ) -> MessageTrack:
        try:
            online = await self._connections.consumers(group)
        except (ConsumerNotOnline, NoRoute) as error:
            return MessageTrack(group=group, track_type=TrackType.NOT_ONLINE, reason=str(error))
        kind = _by_mode(online)
        if kind is None:
            position = await self._position(message, group, addresses)
            kind = track_type(message, position, online.subscription_table.get(message.topic))
        return MessageTrack(group=group, track_type=kind)

    async def _position(
        self, message: ReceivedMessage, group: str, addresses: list[str]
    ) -> int | None:
        """The group's position in the message's queue; None if it has none there."""

        async def ask(address: str) -> ConsumeStats:
            return await self._progress.at_broker(address, group, [message.topic])

        # The record names the host that stored it, which need not be the address of its broker today.
        at_host = [address for address in addresses if address == message.store_host]
        answers = await self._calls.fan_out.each(at_host or addresses, ask)
        if not answers.done:
            raise next(iter(answers.failed.values()), CometError("no broker was asked"))
        for stats in answers.values():
            for queue, lag in stats.offset_table.items():
                if _is_queue_of(message, queue):
                    return lag.consumer_offset
        return None


def track_type(
    message: ReceivedMessage, position: int | None, subscription: SubscriptionData | None
) -> TrackType:
    """Of a group in clustering mode that is online."""
    if position is None or position <= message.queue_offset:
        return TrackType.NOT_CONSUME_YET
    if subscription is None or not is_tag_type(subscription.expression_type):
        return TrackType.CONSUMED
    wants_all = subscription.sub_string == ALL or not subscription.tags_set
    if wants_all or message.tags in subscription.tags_set:
        return TrackType.CONSUMED
    return TrackType.CONSUMED_BUT_FILTERED


def _by_mode(online: ConsumerConnection) -> TrackType | None:
    if online.consume_type == ConsumeType.CONSUME_ACTIVELY:
        return TrackType.PULL
    if online.message_model == MessageModel.BROADCASTING:
        return TrackType.CONSUME_BROADCASTING
    return None


def _is_queue_of(message: ReceivedMessage, queue: MessageQueue) -> bool:
    # A message that was looked up by its position does not know its broker's name.
    return (
        queue.topic == message.topic
        and queue.queue_id == message.queue_id
        and message.broker_name in ("", queue.broker_name)
    )
