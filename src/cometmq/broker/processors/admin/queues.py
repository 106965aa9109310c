"""The entries of a consume queue as they are: request 321."""

from __future__ import annotations

from typing import Final

from cometmq.broker.client_registry import ClientRegistry
from cometmq.broker.processors.admin.common import NOT_SET
from cometmq.protocol.bodies.stats import ConsumeQueueEntries, ConsumeQueueEntry
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.admin import QueryConsumeQueueHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore

ENTRIES_MAX: Final = 10_000
"""Most entries of one reply."""


class QueueAdmin:
    def __init__(self, *, clients: ClientRegistry, store: MessageStore) -> None:
        self._clients = clients
        self._store = store

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.QUERY_CONSUME_QUEUE, self.entries)

    def entries(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(QueryConsumeQueueHeader, command.ext)
        topic, queue_id = header.topic, header.queue_id
        if queue_id not in self._store.queue_ids(topic):
            raise Refused(ResponseCode.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")
        low, high = self._store.min_offset(topic, queue_id), self._store.max_offset(topic, queue_id)
        body = ConsumeQueueEntries(min_queue_index=low, max_queue_index=high)
        if header.consumer_group is not None:
            online = self._clients.consumer_group(header.consumer_group)
            wish = online.subscriptions.get(topic) if online else None
            body.subscription_data = wish
            if wish is None:
                body.filter_data = f"{header.consumer_group}@{topic} is not online!"
        if not low <= header.index < high:
            return command.reply(remark=f"Index {header.index} of {queue_id}@{topic} is not exist!")
        count = min(max(header.count, 0), ENTRIES_MAX)
        body.queue_data = [
            ConsumeQueueEntry(physic_offset=physical, physic_size=size, tags_code=tags_code)
            for physical, size, tags_code in self._store.entries(
                topic, queue_id, header.index, count
            )
        ]
        return command.reply(remark=NOT_SET, body=body.encode())
