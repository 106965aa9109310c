"""The entries of a consume queue as they are, with their units of the extended one: request 321."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

from cometmq.broker.admin.admin_replies import NOT_SET
from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.broker.filters.consumer_filters import ConsumerFilters, filter_fields
from cometmq.broker.filters.message_filter import ALL_MESSAGES, MessageFilter, tag_filter
from cometmq.model.subscription import SubscriptionData, is_tag_type
from cometmq.protocol import fastjson
from cometmq.protocol.bodies.stats import ConsumeQueueEntries, ConsumeQueueEntry
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.admin import QueryConsumeQueueHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.json_file import pretty
from cometmq.store.queues.extended_queue import Unit

ENTRIES_MAX: Final = 10_000
"""Most entries of one reply."""


class QueueAdmin:
    def __init__(
        self, *, clients: ClientRegistry, filters: ConsumerFilters, store: MessageStore
    ) -> None:
        self._clients = clients
        self._filters = filters
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
        subscription = None
        if header.consumer_group is not None:
            online = self._clients.consumer_group(header.consumer_group)
            subscription = online.subscriptions.get(topic) if online else None
            body.subscription_data = subscription
            if subscription is None:
                body.filter_data = f"{header.consumer_group}@{topic} is not online!"
            elif (known := self._filters.get(topic, header.consumer_group)) is not None:
                body.filter_data = pretty(filter_fields(known))
        if not low <= header.index < high:
            return command.reply(remark=f"Index {header.index} of {queue_id}@{topic} is not exist!")
        count = min(max(header.count, 0), ENTRIES_MAX)
        entries = self._store.entries(topic, queue_id, header.index, count)
        units = self._store.units(topic, queue_id, header.index, count)
        wanted = self._wanted(topic, header.consumer_group, subscription)
        body.queue_data = [
            _told(entry, unit, wanted) for entry, unit in zip(entries, units, strict=True)
        ]
        return command.reply(remark=NOT_SET, body=body.encode())

    def _wanted(
        self, topic: str, group: str | None, subscription: SubscriptionData | None
    ) -> MessageFilter | None:
        if subscription is None or group is None:
            return None
        if is_tag_type(subscription.expression_type):
            return tag_filter(subscription)
        return self._filters.filter_of(topic, group) or ALL_MESSAGES


def _told(
    entry: tuple[int, int, int], unit: Unit | None, wanted: MessageFilter | None
) -> ConsumeQueueEntry:
    physical_offset, size_bytes, tags_code = entry
    told = ConsumeQueueEntry(
        physic_offset=physical_offset, physic_size=size_bytes, tags_code=tags_code
    )
    if unit is None:
        return told
    fields: dict[str, Any] = {
        "msgStoreTime": unit.store_timestamp,
        "size": unit.size_bytes,
        "tagsCode": unit.tags_code,
    }
    if unit.bits:
        fields = {"filterBitMap": b64encode(unit.bits).decode(), **fields}
        told.bit_map = _bit_text(unit.bits)
    told.extend_data_json = fastjson.dumps(fields).decode()
    if wanted is not None:
        told.eval = _may_want(wanted, unit)
    return told


def _may_want(wanted: MessageFilter, unit: Unit) -> bool:
    """What the queue alone says; the record may still say no."""
    if wanted.tags is not None and unit.tags_code not in wanted.tags:
        return False
    return wanted.by_unit is None or wanted.by_unit(unit.store_timestamp, unit.bits)


def _bit_text(bits: bytes) -> str:
    """The last byte first, with the end of a line behind the first of every eight."""
    lines = [bits[at : at + 8] for at in range(0, len(bits), 8)]
    return "".join(
        "".join(f"{byte:08b}" for byte in reversed(line)) + "\n" for line in reversed(lines)
    )
