"""How far consumers are: requests 202, 208, 303 and 317."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from cometmq.base.ports import Clock
from cometmq.broker.broker_stats import BrokerStats
from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.model.message_queue import MessageQueue
from cometmq.model.topic import TopicConfig
from cometmq.protocol.bodies.stats import (
    BrokerConsumeStats,
    ConsumeStats,
    ConsumeTimeSpan,
    ConsumeTimeSpans,
    OffsetLag,
    TopicOffset,
    TopicStats,
)
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.admin import (
    GetBrokerConsumeStatsHeader,
    GetConsumeStatsHeader,
    GetTopicStatsHeader,
    QueryConsumeTimeSpanHeader,
)
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.consumer_offsets import OffsetTable
from cometmq.store.meta.groups import GroupTable
from cometmq.store.meta.topics import TopicTable


class ConsumeStatsAdmin:
    """Args: address: the advertised ``ip:port`` of this broker."""

    def __init__(
        self,
        *,
        broker_name: str,
        address: str,
        topics: TopicTable,
        groups: GroupTable,
        offsets: OffsetTable,
        clients: ClientRegistry,
        store: MessageStore,
        stats: BrokerStats,
        clock: Clock,
    ) -> None:
        self._broker_name = broker_name
        self._address = address
        self._topics = topics
        self._groups = groups
        self._offsets = offsets
        self._clients = clients
        self._store = store
        self._stats = stats
        self._clock = clock

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.GET_TOPIC_STATS_INFO, self.topic_stats)
        dispatcher.add(RequestCode.GET_CONSUME_STATS, self.consume_stats)
        dispatcher.add(RequestCode.GET_BROKER_CONSUME_STATS, self.all_consume_stats)
        dispatcher.add(RequestCode.QUERY_CONSUME_TIME_SPAN, self.time_span)

    def topic_stats(self, connection: Connection, command: Command) -> Command:
        config = self._existing(decode_fields(GetTopicStatsHeader, command.ext).topic)
        topic = config.topic_name
        table: dict[MessageQueue, TopicOffset] = {}
        for queue_id in range(config.queue_count):
            end = self._store.max_offset(topic, queue_id)
            table[self._queue(topic, queue_id)] = TopicOffset(
                min_offset=max(self._store.min_offset(topic, queue_id), 0),
                max_offset=end,
                last_update_timestamp=self._stored_at(topic, queue_id, end - 1),
            )
        found = self._stats.view("TOPIC_PUT_NUMS", topic)
        body = TopicStats(offset_table=table, topic_put_tps=found.minute.tps if found else 0.0)
        return command.reply(body=body.encode())

    def consume_stats(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(GetConsumeStatsHeader, command.ext)
        named = [name for name in (header.topic_list or header.topic or "").split(";") if name]
        body = ConsumeStats()
        for config in self._consumed(header.consumer_group, named):
            self._add(body, header.consumer_group, config)
        return command.reply(body=body.encode())

    def all_consume_stats(self, connection: Connection, command: Command) -> Command:
        """Of every group, with an empty list for those that consume nothing of the kind asked for."""
        is_order = decode_fields(GetBrokerConsumeStatsHeader, command.ext).is_order
        entries: list[dict[str, list[ConsumeStats]]] = []
        total = 0
        for group in self._groups.names():
            of_group: list[ConsumeStats] = []
            for config in self._consumed(group, []):
                if is_order and not config.order:
                    continue
                one = ConsumeStats()
                self._add(one, group, config)
                total += sum(
                    lag.broker_offset - lag.consumer_offset for lag in one.offset_table.values()
                )
                of_group.append(one)
            entries.append({group: of_group})
        body = BrokerConsumeStats(
            consume_stats_list=entries, broker_addr=self._address, total_diff=total
        )
        return command.reply(body=body.encode())

    def time_span(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(QueryConsumeTimeSpanHeader, command.ext)
        config = self._existing(header.topic)
        spans = [
            self._span(header.topic, header.group, queue_id)
            for queue_id in range(config.write_queue_nums)
        ]
        return command.reply(body=ConsumeTimeSpans(consume_time_span_set=spans).encode())

    def _existing(self, topic: str) -> TopicConfig:
        config = self._topics.get(topic)
        if config is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
        return config

    def _consumed(self, group: str, named: Iterable[str]) -> list[TopicConfig]:
        """Topics of a group, or those asked for, without what is gone and what an online group no longer wants."""
        online = self._clients.consumer_group(group)
        names = list(named) or sorted(self._offsets.topics_of(group))
        configs = [config for name in names if (config := self._topics.get(name)) is not None]
        if online is None or not online.subscriptions:
            return configs
        return [config for config in configs if config.topic_name in online.subscriptions]

    def _add(self, body: ConsumeStats, group: str, config: TopicConfig) -> None:
        topic = config.topic_name
        for queue_id in range(config.read_queue_nums):
            offset = max(self._offsets.query(group, topic, queue_id), 0)
            body.offset_table[self._queue(topic, queue_id)] = OffsetLag(
                broker_offset=max(self._store.max_offset(topic, queue_id), 0),
                consumer_offset=offset,
                last_timestamp=self._stored_at(topic, queue_id, offset - 1),
                pull_offset=max(self._offsets.pull_offset(group, topic, queue_id), 0),
            )
        found = self._stats.view("GROUP_GET_NUMS", f"{topic}@{group}")
        if found is not None:
            body.consume_tps += found.minute.tps

    def _span(self, topic: str, group: str, queue_id: int) -> ConsumeTimeSpan:
        store = self._store
        first_ms = store.store_time(topic, queue_id, store.min_offset(topic, queue_id))
        end = store.max_offset(topic, queue_id)
        last_ms = store.store_time(topic, queue_id, end - 1)
        offset = self._offsets.query(group, topic, queue_id)
        consumed_ms = store.store_time(topic, queue_id, offset - 1) if offset > 0 else first_ms
        delay_ms = 0
        next_offset = max(offset, 0)
        if next_offset < end:
            delay_ms = self._clock.wall_ms() - store.store_time(topic, queue_id, next_offset)
        return ConsumeTimeSpan(
            message_queue=self._queue(topic, queue_id),
            min_time_stamp=first_ms,
            max_time_stamp=last_ms,
            consume_time_stamp=consumed_ms,
            delay_time=delay_ms,
            min_time_stamp_str=time_text(first_ms),
            max_time_stamp_str=time_text(last_ms),
            consume_time_stamp_str=time_text(consumed_ms),
        )

    def _stored_at(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """Store time of a message, 0 when there is none."""
        if queue_offset < 0:
            return 0
        return max(self._store.store_time(topic, queue_id, queue_offset), 0)

    def _queue(self, topic: str, queue_id: int) -> MessageQueue:
        return MessageQueue(self._broker_name, queue_id, topic)


def time_text(milliseconds: int) -> str:
    """``2026-11-15#22:02:59:815`` in the machine's time zone."""
    moment = datetime.fromtimestamp(milliseconds // 1000, UTC).astimezone()
    return moment.strftime("%Y-%m-%d#%H:%M:%S:") + f"{milliseconds % 1000:03d}"
