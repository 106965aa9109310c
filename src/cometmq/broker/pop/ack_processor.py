"""What consumers do with popped messages: ACK_MESSAGE, BATCH_ACK_MESSAGE, CHANGE_MESSAGE_INVISIBLETIME.

An acknowledgement that has been answered keeps its message from coming again. So with SYNC_FLUSH the reply waits for
the disk. One that comes too late, or twice, is answered the same way and changes nothing, as with RocketMQ.

Consumers acknowledge message by message. The acknowledgements of one turn of the loop are gathered, and appended with
one write (``remoting.turn``): with 32 of them a turn, each cost the broker 16 instead of 25 us.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.durability import Durability
from cometmq.broker.pop.check_points import Ack, Key
from cometmq.broker.pop.handle import parse_handle
from cometmq.broker.pop.pop_processor import INVISIBLE_MS_MAX
from cometmq.broker.pop.pop_topics import real_topic
from cometmq.broker.pop.pops import Pops
from cometmq.broker.send.store_refusals import refusal_of, refuse_on_slave
from cometmq.protocol.bodies.pop import BatchAckBody, decode_bit_set
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.frame import encode_bytes
from cometmq.protocol.headers.pop import AckMessageHeader, ChangeInvisibleTimeHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import AnswerError, Dispatcher
from cometmq.remoting.times.request_times import RequestTimes
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.topics import TopicTable


class PopAckProcessor:
    def __init__(
        self,
        *,
        live: LiveConfig,
        pops: Pops,
        store: MessageStore,
        topics: TopicTable,
        durability: Durability,
    ) -> None:
        self._live = live
        self._pops = pops
        self._store = store
        self._topics = topics
        self._durability = durability
        self._acks: list[Ack] = []
        self._askers: list[tuple[Connection, Command]] = []

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.ACK_MESSAGE, self.ack)
        dispatcher.add(RequestCode.BATCH_ACK_MESSAGE, self.batch_ack)
        dispatcher.add(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, self.change_invisible)
        dispatcher.gather(
            [RequestCode.ACK_MESSAGE],
            partial(self._finish, dispatcher.answer_error, dispatcher.times),
        )

    def ack(self, connection: Connection, command: Command) -> None:
        header = decode_fields(AckMessageHeader, command.ext)
        refuse_on_slave(self._live.current.identity)
        self._acks.append(Ack(self._key(connection, header), (header.offset,)))
        self._askers.append((connection, command))

    def batch_ack(self, connection: Connection, command: Command) -> Command | None:
        body = BatchAckBody.decode(command.body)
        refuse_on_slave(self._live.current.identity)
        if not body.acks:
            raise Refused(ResponseCode.NO_MESSAGE, "expected acknowledgements, got none")
        end_offset = 0
        for one in body.acks:
            topic = real_topic(one.topic, one.consumer_group, one.retry)
            key = Key(one.consumer_group, topic, one.queue_id, one.start_offset, one.pop_time)
            offsets = tuple(one.start_offset + index for index in decode_bit_set(one.bit_set))
            end_offset = max(end_offset, self._done(Ack(key, offsets)))
        return self._answer(connection, command, end_offset)

    def change_invisible(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(ChangeInvisibleTimeHeader, command.ext)
        refuse_on_slave(self._live.current.identity)
        key = self._key(connection, header)
        if not 0 <= header.invisible_time <= INVISIBLE_MS_MAX:
            raise Refused(
                ResponseCode.INVALID_PARAMETER,
                f"expected an invisible time from 0 to {INVISIBLE_MS_MAX} ms, got {header.invisible_time}",
            )
        try:
            point = self._pops.change_invisible(key, header.offset, header.invisible_time)
        except Exception as error:
            if (refusal := self._refusal(error)) is None:
                raise
            raise refusal from error
        if point is None:
            raise Refused(
                ResponseCode.NO_MESSAGE,
                f"the message at {key.topic}@{key.queue_id}:{header.offset} is not out under this handle: "
                "it was acknowledged, or its time is over",
            )
        ext = {
            "popTime": str(point.key.pop_time),
            "invisibleTime": str(point.invisible_ms),
            "reviveQid": str(point.revive_queue_id),
        }
        return command.reply(ext=ext)

    def _finish(self, answer_error: AnswerError, times: RequestTimes) -> None:
        """Append the gathered acknowledgements, and answer them."""
        acks, self._acks = self._acks, []
        askers, self._askers = self._askers, []
        outcomes: Sequence[int | Exception]
        try:
            outcomes = self._pops.ack_each(acks)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, every consumer gets an answer
            outcomes = [error] * len(acks)
        for (connection, command), outcome in zip(askers, outcomes, strict=True):
            if isinstance(outcome, Exception):
                answer_error(connection, command, self._refusal(outcome) or outcome)
                continue
            reply = self._answer(connection, command, outcome)
            if reply is not None and times.is_on:
                times.answered(command.code, reply.code)
            if reply is not None and not command.flag & FLAG_ONEWAY:
                connection.add_frame(encode_bytes(reply))

    def _key(
        self, connection: Connection, header: AckMessageHeader | ChangeInvisibleTimeHeader
    ) -> Key:
        """The check-point that a request means, after RocketMQ's checks. Raises Refused."""
        handle = parse_handle(header.extra_info)
        topic = self._topics.get(header.topic)
        if topic is None:
            raise Refused(
                ResponseCode.TOPIC_NOT_EXIST,
                f"topic[{header.topic}] not exist, apply first please!",
            )
        if not 0 <= header.queue_id < topic.read_queue_nums:
            raise Refused(
                ResponseCode.MESSAGE_ILLEGAL,
                f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}] "
                f"topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[{connection.peer}]",
            )
        first = self._store.min_offset(header.topic, header.queue_id)
        end = self._store.max_offset(header.topic, header.queue_id)
        if not first <= header.offset <= end:
            raise Refused(
                ResponseCode.NO_MESSAGE,
                f"offset is illegal, key:{header.topic}@{header.queue_id}, commit:{header.offset}, "
                f"store:{first}~{end}",
            )
        return Key(
            header.consumer_group,
            header.topic,
            header.queue_id,
            handle.start_offset,
            handle.pop_time,
        )

    def _done(self, ack: Ack) -> int:
        try:
            return self._pops.ack(ack)
        except Exception as error:
            if (refusal := self._refusal(error)) is None:
                raise
            raise refusal from error

    def _refusal(self, error: Exception) -> Refused | None:
        return refusal_of(error, self._live.current.store.log.message_bytes_max)

    def _answer(self, connection: Connection, command: Command, end_offset: int) -> Command | None:
        if not end_offset:
            return command.reply()
        return self._durability.reply(connection, command, end_offset)
