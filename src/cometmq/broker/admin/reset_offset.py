"""Moving a group's offsets, and asking its clients for theirs: requests 222 and 223.

The position that counts is the one in the client's memory. As with RocketMQ 5 a client learns of a reset by the answer
to its next pull (``useServerSideResetOffset``), and what it commits before that does not count; nobody need be online.
As with 4.9 the reset is pushed to every client of the group, and they commit it themselves. It is noted here, too, for
a queue that nobody holds at the moment and for groups that pop, whose position is the broker's. Without a client online
nothing changes then, and tools fall back to committing by themselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from cometmq.base.errors import ProtocolError, RemotingError
from cometmq.broker.admin.admin_replies import NOT_SET
from cometmq.broker.clients.client_registry import Client, ClientRegistry
from cometmq.broker.config.live_config import LiveConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.topic import TopicConfig
from cometmq.protocol.bodies.offsets import (
    ConsumerStatus,
    QueueOffset,
    ResetOffsets,
    ResetOffsetsForC,
)
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.admin import GetConsumerStatusHeader, ResetOffsetHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.consumer_offsets import OffsetTable
from cometmq.store.meta.groups import GroupTable
from cometmq.store.meta.topics import TopicTable

log = logging.getLogger("cometmq.broker")

CALL_SECONDS: Final = 5.0
CALLS_AT_ONCE: Final = 64


class ResetOffsetAdmin:
    """Args: wake: called with topic, queue and group of a pull that may wait and is to hear of a reset."""

    def __init__(
        self,
        *,
        live: LiveConfig,
        topics: TopicTable,
        groups: GroupTable,
        offsets: OffsetTable,
        clients: ClientRegistry,
        store: MessageStore,
        wake: Callable[[str, int, str], None],
    ) -> None:
        self._live = live
        self._broker_name = live.current.identity.broker_name
        self._topics = topics
        self._groups = groups
        self._offsets = offsets
        self._clients = clients
        self._store = store
        self._wake = wake

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, self.reset)
        dispatcher.add(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, self.status)

    def reset(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(ResetOffsetHeader, command.ext)
        if self._live.current.consumers.server_side_reset:
            return self._reset_here(connection, command, header)
        return self._tell_clients(connection, command, header)

    def _reset_here(
        self, connection: Connection, command: Command, header: ResetOffsetHeader
    ) -> Command:
        if self._live.current.identity.is_slave:
            raise _refused("Can not reset offset in slave broker")
        config = self._topics.get(header.topic)
        if config is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} does not exist")
        if self._groups.get(header.group) is None:
            raise Refused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {header.group} does not exist"
            )
        queue_ids = _queue_ids(header, config.read_queue_nums, config)
        table = {
            MessageQueue(self._broker_name, queue_id, header.topic): self._found(header, queue_id)
            for queue_id in queue_ids
        }
        for queue, offset in table.items():
            self._offsets.reset(header.group, header.topic, queue.queue_id, offset)
            self._wake(header.topic, queue.queue_id, header.group)
        log.info(
            "offsets reset group=%s topic=%s timestamp=%d queues=%d by=%s",
            header.group,
            header.topic,
            header.timestamp,
            len(table),
            connection.peer,
        )
        return command.reply(body=ResetOffsets(offset_table=table).encode())

    def _tell_clients(
        self, connection: Connection, command: Command, header: ResetOffsetHeader
    ) -> Command:
        config = self._topics.get(header.topic)
        if config is None:
            raise _refused(
                f"[reset-offset] reset offset failed, no topic in this broker. topic={header.topic}"
            )
        table = {
            MessageQueue(self._broker_name, queue_id, header.topic): self._target(header, queue_id)
            for queue_id in _queue_ids(header, config.write_queue_nums, config)
        }
        clients = self._online(header.group)
        if not clients:
            raise Refused(
                ResponseCode.CONSUMER_NOT_ONLINE,
                f"Consumer not online, so can not reset offset, Group: {header.group} "
                f"Topic: {header.topic} Timestamp: {header.timestamp}",
            )
        for queue, offset in table.items():
            self._offsets.commit(header.group, header.topic, queue.queue_id, offset)
        for client in clients:
            client.connection.oneway(_push(header, table, is_c=command.language == "CPP"))
        log.info(
            "offsets reset group=%s topic=%s timestamp=%d clients=%d by=%s",
            header.group,
            header.topic,
            header.timestamp,
            len(clients),
            connection.peer,
        )
        return command.reply(remark=NOT_SET, body=ResetOffsets(offset_table=table).encode())

    def status(self, connection: Connection, command: Command) -> Awaitable[Command]:
        header = decode_fields(GetConsumerStatusHeader, command.ext)
        clients = self._online(header.group)
        if not clients:
            raise Refused(
                ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{header.group}] not online"
            )
        # Despite its name the field holds a client id.
        wanted = [
            client for client in clients if header.client_addr in (None, "", client.client_id)
        ]
        return self._collect(command, header, wanted)

    async def _collect(
        self, command: Command, header: GetConsumerStatusHeader, clients: Sequence[Client]
    ) -> Command:
        body = ConsumerStatus()
        for start in range(0, len(clients), CALLS_AT_ONCE):
            some = clients[start : start + CALLS_AT_ONCE]
            answers = await asyncio.gather(*(_ask(client, header) for client in some))
            for client, table in zip(some, answers, strict=True):
                if table is not None:
                    body.consumer_table[client.client_id] = table
        return command.reply(remark=NOT_SET, body=body.encode())

    def _online(self, group: str) -> list[Client]:
        entry = self._clients.consumer_group(group)
        return [] if entry is None else list(entry.clients.values())

    def _target(self, header: ResetOffsetHeader, queue_id: int) -> int:
        """Where a queue's consumer is to go on, as 4.9 says it: never forward unless it is forced."""
        current = self._offsets.query(header.group, header.topic, queue_id)
        if current < 0:
            raise _refused(f"THe consumer group <{header.group}> not exist")
        found = self._found(header, queue_id)
        is_given = header.offset is not None and header.offset >= 0
        return found if is_given or header.is_force or found < current else current

    def _found(self, header: ResetOffsetHeader, queue_id: int) -> int:
        """The offset that was asked for, or that of the time."""
        topic, store = header.topic, self._store
        if header.offset is not None and header.offset >= 0:
            low, high = max(store.min_offset(topic, queue_id), 0), store.max_offset(topic, queue_id)
            if not low <= header.offset <= high + 1:
                raise _refused(
                    f"Target offset {header.offset} not in consume queue range [{low}-{high}]"
                )
            return header.offset
        if header.timestamp < 0:
            return max(store.max_offset(topic, queue_id), 0)
        return max(store.offset_by_time(topic, queue_id, header.timestamp), 0)


def _queue_ids(header: ResetOffsetHeader, count: int, config: TopicConfig) -> Sequence[int]:
    """The one that was named, or the first ``count``."""
    if header.queue_id is None or header.queue_id < 0:
        return range(count)
    if header.queue_id >= config.queue_count:
        raise _refused(f"topic {header.topic} has no queue {header.queue_id}")
    return [header.queue_id]


def _push(header: ResetOffsetHeader, table: Mapping[MessageQueue, int], *, is_c: bool) -> Command:
    # RocketMQ 4.9 says false here whatever it was asked; the decision is in the offsets already.
    told = ResetOffsetHeader(topic=header.topic, group=header.group, timestamp=header.timestamp)
    body: ResetOffsets | ResetOffsetsForC
    if is_c:
        body = ResetOffsetsForC(
            offset_table=[
                QueueOffset(
                    broker_name=queue.broker_name,
                    queue_id=queue.queue_id,
                    topic=queue.topic,
                    offset=offset,
                )
                for queue, offset in table.items()
            ]
        )
    else:
        body = ResetOffsets(offset_table=dict(table))
    return Command(
        code=RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
        ext=encode_fields(told),
        body=body.encode(),
    )


async def _ask(client: Client, header: GetConsumerStatusHeader) -> dict[MessageQueue, int] | None:
    """One client's own offsets; None when it does not say."""
    question = GetConsumerStatusHeader(topic=header.topic, group=header.group)
    request = Command(code=RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, ext=encode_fields(question))
    try:
        reply = await client.connection.call(request, CALL_SECONDS)
        if reply.code == ResponseCode.SUCCESS:
            return ConsumerStatus.decode(reply.body).message_queue_table
        reason = reply.remark or f"code {reply.code}"
    except (RemotingError, ProtocolError) as error:
        reason = str(error)
    log.warning("client status missing client=%s reason=%s", client.client_id, reason)
    return None


def _refused(text: str) -> Refused:
    return Refused(ResponseCode.SYSTEM_ERROR, text)
