"""Bulk pulls: BULK_PULL, a request of our own for readers of whole ranges, such as Spark's tasks.

What a pull may read a bulk pull may read, and it is refused in the same words (``PullProcessor.admit``). It differs in
size, up to 8 MiB and 16,384 records a reply, in the sizes that come behind the records, and in that it never waits and
commits nothing. The stored bytes leave without a copy, as with a pull.

Fair to everybody else on the loop: one reply costs a few milliseconds at most, since the number of entries looked at is
bounded, too, and a connection whose replies wait to be taken is not read from meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Final

from cometmq.base.errors import StoreError
from cometmq.broker.broker_stats import BrokerStats
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.filters.message_filter import SCAN_COUNT_MAX, MessageFilter
from cometmq.broker.pull.cold_pulls import answered_from_memory
from cometmq.broker.pull.pull_processor import PullProcessor
from cometmq.broker.pull.pull_subscription import refused, unreadable
from cometmq.broker.pull.slave_reads import keep_offset
from cometmq.model.flags import PullFlag
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.subscription import PYTHON
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import FLAG_RESPONSE, Body, Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.pull import BulkPullHeader, PullMessageHeader
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore
from cometmq.store.read.bulk_reader import BulkLimits, BulkResult
from cometmq.store.read.cold import NotInMemory
from cometmq.store.read.read_results import GetStatus

REPLY_BYTES_MAX: Final = 8 << 20
REPLY_COUNT_MAX: Final = 16_384
TAG_SCAN_COUNT: Final = 8 * SCAN_COUNT_MAX
"""Entries that one bulk pull holds against a tag: a few milliseconds."""

_LONG_MAX: Final = (1 << 63) - 1


class BulkPullProcessor:
    def __init__(
        self, *, live: LiveConfig, pulls: PullProcessor, store: MessageStore, stats: BrokerStats
    ) -> None:
        self._pulls = pulls
        self._store = store
        self._stats = stats
        self._apply(live.current)
        live.on_change(self._apply)

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.BULK_PULL, self.pull)

    def pull(self, connection: Connection, command: Command) -> Command | Awaitable[Command]:
        header = decode_fields(BulkPullHeader, command.ext)
        answer = partial(self._answer, connection, command, header)
        try:
            return answer(may_wait=False)
        except NotInMemory as cold:
            return answered_from_memory(self._store.loader, cold, answer)

    def _answer(
        self, connection: Connection, command: Command, header: BulkPullHeader, may_wait: bool
    ) -> Command:
        group, wanted = self._pulls.admit(connection, _as_pull(header))
        if wanted.function is not None:
            raise refused(
                ResponseCode.SUBSCRIPTION_PARSE_FAILED,
                f"a bulk pull takes tags or SQL92, not {PYTHON}; use an ordinary pull for that",
            )
        end_offset = _LONG_MAX if header.end_offset is None else header.end_offset
        if end_offset <= header.offset:
            raise refused(
                ResponseCode.INVALID_PARAMETER,
                f"endOffset {end_offset} must be greater than offset {header.offset}",
            )
        found = self._read(header, end_offset, wanted, may_wait=may_wait)
        if self._pulls.is_uncorrected:
            keep_offset(found, header.offset)
        return self._reply(command, header, group, found)

    def _read(
        self, header: BulkPullHeader, end_offset: int, wanted: MessageFilter, *, may_wait: bool
    ) -> BulkResult:
        limits = BulkLimits(
            max_bytes=min(header.max_bytes, REPLY_BYTES_MAX),
            max_count=min(max(header.max_count, 1), REPLY_COUNT_MAX),
            scan_max=TAG_SCAN_COUNT if wanted.wants is None else wanted.scan_count,
        )
        try:
            return self._store.get_bulk(
                header.topic,
                header.queue_id,
                header.offset,
                end_offset,
                limits,
                tags=wanted.by_tag,
                record=wanted.by_record,
                unit=wanted.by_unit,
                may_wait=may_wait,
            )
        except StoreError as error:
            raise unreadable(error) from error

    def _reply(
        self,
        command: Command,
        header: BulkPullHeader,
        group: SubscriptionGroupConfig,
        found: BulkResult,
    ) -> Command:
        parts: list[Body] | None = None
        if found.status is GetStatus.FOUND:
            if header.sizes_only:
                parts = [found.sizes]
            else:
                parts = [*found.parts, found.sizes]
                self._stats.pulled(
                    header.topic, header.consumer_group, found.count, found.size_bytes
                )
        else:
            self._stats.pulls_missed.count += 1
        return Command(
            int(self._pulls.code_of(found.status, header.offset)),
            {
                "nextBeginOffset": str(found.next_offset),
                "minOffset": str(found.min_offset),
                "maxOffset": str(found.max_offset),
                "count": str(found.count),
                "suggestWhichBrokerId": str(group.broker_id if self._is_slave_read else 0),
            },
            b"",
            FLAG_RESPONSE,
            command.opaque,
            found.status.value,
            encoding=command.encoding,
            body_parts=parts,
        )

    def _apply(self, config: BrokerConfig) -> None:
        self._is_slave_read = config.consumers.slave_read


def _as_pull(header: BulkPullHeader) -> PullMessageHeader:
    """The pull that asks for the same messages: what it may not read this one may not, either."""
    return PullMessageHeader(
        consumer_group=header.consumer_group,
        topic=header.topic,
        queue_id=header.queue_id,
        queue_offset=header.offset,
        max_msg_nums=1,
        sys_flag=int(PullFlag.SUBSCRIPTION),
        subscription=header.subscription,
        expression_type=header.expression_type,
    )
