"""Pulls: PULL_MESSAGE, and LITE_PULL_MESSAGE which is the same under another code.

Stored bytes are shipped as they are, straight out of the log's mapping. A pull that finds nothing new may wait in
``long_polling``; when it is woken it runs once more, without waiting and without committing its offset again.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Final

from cometmq.base.errors import StoreError
from cometmq.base.ports import Clock, EventLoop
from cometmq.broker.broker_stats import BrokerStats
from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.filters.consumer_filters import ConsumerFilters
from cometmq.broker.filters.functions.pool import FilterFunctions, FunctionsBusy, FunctionUnusable
from cometmq.broker.filters.functions.reading import read_by_function
from cometmq.broker.filters.message_filter import SCAN_COUNT_MAX, MessageFilter
from cometmq.broker.pull.cold_pulls import answered_from_memory
from cometmq.broker.pull.long_polling import LongPolling, ParkedPull
from cometmq.broker.pull.master_presence import MasterPresence
from cometmq.broker.pull.pull_reply import found_head, reply_fields
from cometmq.broker.pull.pull_subscription import PullSubscriptions, refused, unreadable
from cometmq.broker.pull.slave_reads import (
    hold_seconds,
    is_not_here,
    keep_offset,
    slave_code,
    suggested_id,
)
from cometmq.broker.topic_creation import TopicCreation
from cometmq.model.flags import PullFlag, is_readable
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.ids import MASTER_ID
from cometmq.native.cut_pull import CutPull
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import FLAG_RESPONSE, Body, Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.frame import with_parts
from cometmq.protocol.header_json import decode_header
from cometmq.protocol.headers.pull import PullMessageHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.times.request_times import RequestTimes
from cometmq.store.message_store import UNLIMITED, MessageStore
from cometmq.store.meta.consumer_offsets import OffsetTable
from cometmq.store.meta.topics import TopicTable
from cometmq.store.read.cold import NotInMemory
from cometmq.store.read.read_results import GetResult, GetStatus

_COMMIT: Final = int(PullFlag.COMMIT_OFFSET)
_SUSPEND: Final = int(PullFlag.SUSPEND)
_LITE: Final = int(PullFlag.LITE_PULL)
_SUCCESS: Final = int(ResponseCode.SUCCESS)

SUSPEND_SECONDS_MAX: Final = 600.0
"""Longest time a pull is held, whatever it asks for."""

_CODES: Final = {
    GetStatus.FOUND: ResponseCode.SUCCESS,
    GetStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}


class PullProcessor:
    """Also owns the pulls that wait; ``long_polling.arrived`` is to be called for every append."""

    def __init__(
        self,
        *,
        live: LiveConfig,
        store: MessageStore,
        topics: TopicTable,
        offsets: OffsetTable,
        creation: TopicCreation,
        clients: ClientRegistry,
        filters: ConsumerFilters,
        functions: FilterFunctions,
        stats: BrokerStats,
        master: MasterPresence,
        clock: Clock,
        loop: EventLoop,
        reached: Reached,
        times: RequestTimes,
    ) -> None:
        self._times = times
        self._store = store
        self._topics = topics
        self._offsets = offsets
        self._creation = creation
        self._functions = functions
        self._subscriptions = PullSubscriptions(
            live=live, clients=clients, filters=filters, functions=functions
        )
        self._stats = stats
        self._master = master
        self._monotonic = clock.monotonic
        self.long_polling = LongPolling(
            self._rerun,
            clock=clock,
            loop=loop,
            limits=live.current.polling,
            reached=reached,
        )
        self._is_slave = live.current.identity.is_slave
        self._apply(live.current)
        live.on_change(self._apply)
        master.on_change(self._master_came_or_went)

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.PULL_MESSAGE, self.pull)
        dispatcher.add(RequestCode.LITE_PULL_MESSAGE, self.pull)

    def pull(
        self, connection: Connection, command: Command
    ) -> Command | Awaitable[Command | None] | None:
        header = decode_fields(PullMessageHeader, command.ext)
        group, wanted = self.admit(connection, header)
        if (reset := self._reset(connection, header)) is not None:
            # What this pull would commit is older than the reset.
            return self._reply(command, header, group, reset)
        if wanted.function is not None:
            self._commit(header)
            return self._pull_by_function(connection, command, header, group, wanted)
        try:
            found = self._read(header, wanted, may_wait=False)
        except NotInMemory as cold:
            self._commit(header)
            answer = partial(self._pull_again, connection, command, header)
            return answered_from_memory(self._store.loader, cold, answer)
        self._commit(header)
        if self._waits(connection, command, header, wanted, found):
            return None
        return self._reply(command, header, group, found)

    def _pull_again(
        self, connection: Connection, command: Command, header: PullMessageHeader, may_wait: bool
    ) -> Command | None:
        """Answer a pull whose messages were loaded. What changed meanwhile is judged anew."""
        group, wanted = self.admit(connection, header)
        if (reset := self._reset(connection, header)) is not None:
            return self._reply(command, header, group, reset)
        if wanted.function is not None:
            # The group's subscription has changed: its next pull goes by it.
            unread = self._instead(header, GetStatus.NO_MATCHED_MESSAGE, header.queue_offset)
            return self._reply(command, header, group, unread)
        found = self._read(header, wanted, may_wait=may_wait)
        if not connection.is_closed and self._waits(connection, command, header, wanted, found):
            return None
        return self._reply(command, header, group, found)

    async def _pull_by_function(
        self,
        connection: Connection,
        command: Command,
        header: PullMessageHeader,
        group: SubscriptionGroupConfig,
        wanted: MessageFilter,
    ) -> Command | None:
        found = await self._read_by_function(header, wanted)
        if self._waits(connection, command, header, wanted, found):
            return None
        return self._reply(command, header, group, found)

    def _commit(self, header: PullMessageHeader) -> None:
        if header.sys_flag & _COMMIT and header.commit_offset >= 0:
            self._offsets.commit(
                header.consumer_group, header.topic, header.queue_id, header.commit_offset
            )

    def _waits(
        self,
        connection: Connection,
        command: Command,
        header: PullMessageHeader,
        wanted: MessageFilter,
        found: GetResult,
    ) -> bool:
        """Whether a pull that found nothing new was parked."""
        if not header.sys_flag & _SUSPEND:
            return False
        status = found.status
        if self._is_uncorrected and is_not_here(status):
            return self._park(connection, command, header, wanted, status)
        return (
            code_of(status, header.queue_offset) == ResponseCode.PULL_NOT_FOUND
            # Data is missing in the middle of the queue: no append will ever wake that one.
            and status is not GetStatus.OFFSET_FOUND_NULL
            and self._park(connection, command, header, wanted, status)
        )

    def _rerun(self, parked: ParkedPull) -> None:
        """Answer a pull that waited. What changed meanwhile (topic deleted, client gone) is judged anew."""
        connection, command = parked.connection, parked.command
        try:
            header = decode_fields(PullMessageHeader, command.ext)
            group, wanted = self.admit(connection, header)
            reset = self._reset(connection, header)
            if wanted.function is not None and reset is None:
                connection.run_handler(self._rerun_by_function(parked, header, group, wanted))
                return
            found = self._read(header, wanted) if reset is None else reset
            reply = self._reply(command, header, group, found)
        except Refused as refusal:
            reply = command.reply(refusal.code, refusal.remark, ext=refusal.ext)
        connection.send(reply)
        parked.took(self._times, reply.code)

    async def _rerun_by_function(
        self,
        parked: ParkedPull,
        header: PullMessageHeader,
        group: SubscriptionGroupConfig,
        wanted: MessageFilter,
    ) -> None:
        connection, command = parked.connection, parked.command
        try:
            found = await self._read_by_function(header, wanted)
            reply = self._reply(command, header, group, found)
        except Refused as refusal:
            reply = command.reply(refusal.code, refusal.remark, ext=refusal.ext)
        connection.send(reply)
        parked.took(self._times, reply.code)

    def admit(
        self, connection: Connection, header: PullMessageHeader
    ) -> tuple[SubscriptionGroupConfig, MessageFilter]:
        """The checks of a pull in RocketMQ's order, and what it wants. Raises Refused."""
        if not self._is_readable:
            raise refused(ResponseCode.NO_PERMISSION, "the broker pulling message is forbidden")
        if header.sys_flag & _LITE and not self._is_lite_pull:
            raise refused(
                ResponseCode.NO_PERMISSION, "the broker pulling message of lite pull is forbidden"
            )
        group = self._creation.group(header.consumer_group, connection)
        if group is None:
            raise refused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group [{header.consumer_group}] does not exist",
            )
        if not group.consume_enable:
            raise refused(
                ResponseCode.NO_PERMISSION,
                f"subscription group no permission, {header.consumer_group}",
            )
        topic = self._topics.get(header.topic)
        if topic is None:
            raise refused(
                ResponseCode.TOPIC_NOT_EXIST,
                f"topic[{header.topic}] not exist, apply first please!",
            )
        if not is_readable(topic.perm):
            raise refused(
                ResponseCode.NO_PERMISSION,
                f"the topic[{header.topic}] pulling message is forbidden",
            )
        if not 0 <= header.queue_id < topic.read_queue_nums:
            raise refused(
                ResponseCode.SYSTEM_ERROR,
                f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}] "
                f"topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[{connection.peer}]",
            )
        return group, self._subscriptions.filter_of(header, group)

    def _reset(self, connection: Connection, header: PullMessageHeader) -> GetResult | None:
        """Where to go on instead, if somebody has reset the group's position and this reader does not know it yet."""
        topic, queue_id = header.topic, header.queue_id
        offset = self._offsets.told_reset(header.consumer_group, topic, queue_id, connection.peer)
        return None if offset is None else self._instead(header, GetStatus.OFFSET_RESET, offset)

    def _instead(self, header: PullMessageHeader, status: GetStatus, offset: int) -> GetResult:
        """Where to go on, without a read."""
        store, topic, queue_id = self._store, header.topic, header.queue_id
        return GetResult(
            status,
            offset,
            max(store.min_offset(topic, queue_id), 0),
            store.max_offset(topic, queue_id),
        )

    def _read(
        self, header: PullMessageHeader, wanted: MessageFilter, *, may_wait: bool = True
    ) -> GetResult:
        """Raises NotInMemory if it would have to wait for the disk, and may not."""
        started = self._monotonic()
        try:
            found = self._store.get(
                header.topic,
                header.queue_id,
                header.queue_offset,
                min(max(header.max_msg_nums, 1), SCAN_COUNT_MAX),
                max_bytes=header.max_msg_bytes or UNLIMITED,
                tags=wanted.by_tag,
                record=wanted.by_record,
                scan_max=wanted.scan_count,
                unit=wanted.by_unit,
                may_wait=may_wait,
            )
        except StoreError as error:
            raise unreadable(error) from error
        took_ms = (self._monotonic() - started) * 1000
        if took_ms >= self._stats.get_max_ms + 1:
            self._stats.get_max_ms = int(took_ms)
        self._pulled(header, found)
        return found

    def _pulled(self, header: PullMessageHeader, found: GetResult) -> None:
        if self._is_uncorrected:
            keep_offset(found, header.queue_offset)
        self._offsets.pulled(
            header.consumer_group, header.topic, header.queue_id, found.next_offset
        )

    async def _read_by_function(
        self, header: PullMessageHeader, wanted: MessageFilter
    ) -> GetResult:
        assert wanted.function is not None
        try:
            found = await read_by_function(
                self._store,
                self._functions,
                wanted.function,
                header,
                seconds_max=self._function_seconds,
                monotonic=self._monotonic,
            )
        except StoreError as error:
            raise unreadable(error) from error
        except FunctionUnusable as error:
            raise refused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(error)) from error
        except FunctionsBusy as error:
            raise refused(ResponseCode.SYSTEM_BUSY, str(error)) from error
        self._pulled(header, found)
        return found

    def _park(
        self,
        connection: Connection,
        command: Command,
        header: PullMessageHeader,
        wanted: MessageFilter,
        status: GetStatus,
    ) -> bool:
        if self._is_long_polling:
            seconds = min(max(header.suspend_timeout_millis, 0) / 1000, SUSPEND_SECONDS_MAX)
        else:
            seconds = self._short_polling_seconds
        if self._is_slave:
            seconds = hold_seconds(status, seconds, is_master_there=self._master.is_there)
        parked = ParkedPull(
            connection,
            command,
            topic=header.topic,
            queue_id=header.queue_id,
            offset=header.queue_offset,
            tags=wanted.tags,
            wants=wanted.by_properties,
        )
        return self.long_polling.park(parked, seconds)

    def _reply(
        self,
        command: Command,
        header: PullMessageHeader,
        group: SubscriptionGroupConfig,
        found: GetResult,
    ) -> Command:
        if found.status is GetStatus.FOUND:
            self._stats.pulled(header.topic, header.consumer_group, found.count, found.size_bytes)
        else:
            self._stats.pulls_missed.count += 1
        parts: list[Body] | None = list(found.parts) if found.parts else None
        return Command(
            int(self.code_of(found.status, header.queue_offset)),
            reply_fields(
                self._suggested(group, found),
                found.next_offset,
                found.min_offset,
                found.max_offset,
            ),
            b"",
            FLAG_RESPONSE,
            command.opaque,
            found.status.value,
            encoding=command.encoding,
            body_parts=parts,
        )

    def answer_admitted(
        self,
        connection: Connection,
        header: PullMessageHeader,
        group: SubscriptionGroupConfig,
        wanted: MessageFilter,
        pull: CutPull,
    ) -> int | None:
        """Do the same as ``pull`` for one in JSON that was admitted and not told of a reset, and does not filter by a
        function. The code of the answer; None if there is none yet.

        Raises:
            NotInMemory: it would have to wait for the disk. Nothing was done.
        """
        found = self._read(header, wanted, may_wait=False)
        self._commit(header)
        if found.status is not GetStatus.FOUND:
            command = decode_header(pull.header(), b"")
            if self._waits(connection, command, header, wanted, found):
                return None
            reply = self._reply(command, header, group, found)
            connection.send(reply)
            return reply.code
        size_bytes = found.size_bytes
        self._stats.pulled(header.topic, header.consumer_group, found.count, size_bytes)
        head = found_head(
            self._suggested(group, found),
            found.next_offset,
            found.min_offset,
            found.max_offset,
            pull.opaque,
            size_bytes,
        )
        connection.send_parts(with_parts(head, found.parts, size_bytes))
        return _SUCCESS

    def _suggested(self, group: SubscriptionGroupConfig, found: GetResult) -> int:
        """The broker to pull from next."""
        if not self._is_slave_read:
            return MASTER_ID
        return suggested_id(
            group,
            lags=found.suggest_slave,
            is_slave=self._is_slave,
            is_master_there=self._master.is_there,
        )

    def code_of(self, status: GetStatus, offset: int) -> ResponseCode:
        """What a read from ``offset`` is answered with in the present role."""
        if self._is_uncorrected and is_not_here(status):
            return slave_code(code_of(status, offset))
        return code_of(status, offset)

    @property
    def is_uncorrected(self) -> bool:
        """Whether readers keep an offset that this broker does not have."""
        return self._is_uncorrected

    def _master_came_or_went(self, is_there: bool) -> None:
        if is_there and self._is_slave:
            # The master may have messages that will not come here for a while.
            self.long_polling.release_all()

    def _apply(self, config: BrokerConfig) -> None:
        self._is_readable = is_readable(config.topics.permission)
        self._function_seconds = config.filters.function_batch_ms / 1000
        self._is_lite_pull = config.polling.lite_pull
        self._is_long_polling = config.polling.long_polling
        self._short_polling_seconds = config.polling.short_polling_ms / 1000
        self._is_slave_read = config.consumers.slave_read
        self._is_uncorrected = config.identity.is_slave and not config.consumers.checks_at_slave
        self.long_polling.limits = config.polling
        if self._is_slave is not config.identity.is_slave:
            self._is_slave = config.identity.is_slave
            self.long_polling.release_all()


def code_of(status: GetStatus, offset: int) -> ResponseCode:
    """What a pull from ``offset`` is answered with."""
    code = _CODES.get(status)
    if code is not None:
        return code
    # An empty or unknown queue: fine for a reader at its start, a wrong offset for any other.
    return ResponseCode.PULL_OFFSET_MOVED if offset else ResponseCode.PULL_NOT_FOUND
