"""Positions of consumer groups: preview and reset, skip, clone, set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cometmq.admin.calls import Calls
from cometmq.admin.errors import NoSuchName, no_such
from cometmq.admin.fan_out import ByServer, Listing
from cometmq.admin.groups.progress import Progress
from cometmq.admin.groups.reset_plan import OffsetMove, ResetPoint, checked_offset
from cometmq.admin.servers.settings import read_settings
from cometmq.base.errors import CometError, UsageError
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import check_group
from cometmq.protocol.bodies.offsets import ConsumerStatus, ResetOffsets
from cometmq.protocol.bodies.stats import ConsumeTimeSpan, ConsumeTimeSpans
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.headers.admin import (
    GetConsumerStatusHeader,
    QueryConsumeTimeSpanHeader,
    ResetOffsetHeader,
)
from cometmq.protocol.headers.offsets import UpdateConsumerOffsetHeader
from cometmq.protocol.reply_errors import BrokerReplyError, ConsumerNotOnline

RESET_SECONDS = 15.0
"""The broker pushes it to clients first."""

_SERVER_SIDE_RESET = "useServerSideResetOffset"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetResult:
    """``offsets`` is where the group goes on, by queue. What ``failed`` is as it was; keys are addresses of brokers."""

    offsets: Mapping[MessageQueue, int]
    failed: Mapping[str, CometError]

    @property
    def is_complete(self) -> bool:
        return not self.failed


class Offsets:
    """``admin.offsets``"""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._progress = Progress(calls)

    async def preview(
        self, group: str, topic: str, to: ResetPoint, *, broker: str | None = None
    ) -> list[OffsetMove]:
        """What a reset would do, queue by queue; nothing is changed.

        Args:
            broker: only at this broker.

        Raises:
            NoRoute: no name server knows the topic.
            NoSuchName: the broker or the queue is not there.
            CometError: a broker did not answer.
        """
        check_group(group)
        queues = await self._queues(topic, to, broker)
        bounds, failures = await self._calls.queues.bounds(queues)
        for failure in failures.values():
            raise failure
        positions = await self._calls.queues.committed(group, queues)
        if to.time_ms is None:
            targets = {
                queue: bounds[queue].end
                if to.offset is None
                else checked_offset(queue, to.offset, bounds[queue])
                for queue in queues
            }
        else:
            targets = await self._calls.queues.offsets_by_time(dict.fromkeys(queues, to.time_ms))
        return [
            OffsetMove(
                queue=queue,
                before=positions[queue],
                after=max(targets[queue], 0),
                min_offset=bounds[queue].first,
                max_offset=bounds[queue].end,
            )
            for queue in queues
        ]

    async def reset(
        self,
        group: str,
        topic: str,
        to: ResetPoint,
        *,
        broker: str | None = None,
        force: bool = True,
    ) -> ResetResult:
        """Have a group go on elsewhere in a topic, online or not.

        Brokers tell the group's clients (222). Where none is online and the broker needs one, as RocketMQ 4 does, the
        positions are committed instead (15).

        Args:
            broker: only at this broker.
            force: forward, too. Without it no queue's position is set to a later one.

        Raises:
            NoRoute, NoSuchName, UsageError: as ``preview``; nothing was changed then.
        """
        moves = await self.preview(group, topic, to, broker=broker)
        moves = [move for move in moves if force or move.before is None or move.after < move.before]
        addresses = await self._calls.masters_of(topic)
        by_address: dict[str, list[OffsetMove]] = {}
        for move in moves:
            by_address.setdefault(addresses[move.queue.broker_name], []).append(move)

        async def at_broker(address: str) -> dict[MessageQueue, int]:
            return await self._reset_at(address, group, topic, to, by_address[address], force)

        answers = await self._calls.fan_out.each(by_address, at_broker)
        offsets = {queue: at for table in answers.values() for queue, at in table.items()}
        return ResetResult(offsets=dict(sorted(offsets.items())), failed=answers.failed)

    async def skip(self, group: str, topic: str, *, broker: str | None = None) -> ResetResult:
        """Have a group pass over everything that it has not consumed. Raises as ``reset``."""
        return await self.reset(group, topic, ResetPoint.end(), broker=broker)

    async def clone(
        self, source: str, destination: str, topic: str, *, only_offline: bool = True
    ) -> ResetResult:
        """Have one group start in a topic where another one is.

        Args:
            only_offline: refuse if the destination is online: its clients would commit their own positions again.

        Raises:
            NoSuchName: the source has no positions in the topic.
            UsageError: the destination is online.
        """
        check_group(destination)
        if source == destination:
            raise UsageError(f"expected two groups, got {source!r} twice")
        # Asked for one topic, brokers tell of all its queues, also of a group that has no positions.
        progress = await self._progress.of_group(source, ())
        if progress.failed:
            return ResetResult(offsets={}, failed=progress.failed)
        offsets = {
            row.queue: row.consumer_offset for row in progress.queues if row.queue.topic == topic
        }
        if not offsets:
            raise NoSuchName(f"group {source!r} has no positions in topic {topic!r}")
        if only_offline:
            await self._check_offline(destination, await self._calls.masters_of(topic))
        return await self.commit(destination, offsets)

    async def commit(self, group: str, offsets: Mapping[MessageQueue, int]) -> ResetResult:
        """Set positions of a group as a client would (15). Clients that are online overwrite them; see ``reset``.

        Raises:
            UsageError: an offset below 0.
        """
        check_group(group)
        for queue, offset in offsets.items():
            if offset < 0:
                raise UsageError(f"expected an offset of at least 0 in {queue}, got {offset}")
        by_address: dict[str, dict[MessageQueue, int]] = {}
        for topic in {queue.topic for queue in offsets}:
            addresses = await self._calls.masters_of(topic)
            for queue, offset in offsets.items():
                if queue.topic != topic:
                    continue
                if queue.broker_name not in addresses:
                    raise no_such(f"topic {topic!r} at broker", queue.broker_name, [*addresses])
                by_address.setdefault(addresses[queue.broker_name], {})[queue] = offset

        async def ask(address: str) -> dict[MessageQueue, int]:
            return await self._commit_all(address, group, by_address[address])

        answers = await self._calls.fan_out.each(by_address, ask)
        done = {queue: at for table in answers.values() for queue, at in table.items()}
        return ResetResult(offsets=dict(sorted(done.items())), failed=answers.failed)

    async def time_span(self, group: str, topic: str) -> Listing[ConsumeTimeSpan]:
        """Times of the first, the last and the last consumed message of each queue (303). Raises NoRoute."""
        header = QueryConsumeTimeSpanHeader(topic=topic, group=group)

        async def ask(address: str) -> ConsumeTimeSpans:
            code = RequestCode.QUERY_CONSUME_TIME_SPAN
            return await self._calls.table(address, code, ConsumeTimeSpans, header)

        addresses = (await self._calls.masters_of(topic)).values()
        answers = await self._calls.fan_out.each(addresses, ask)
        rows = [row for told in answers.values() for row in told.consume_time_span_set]
        return Listing(sorted(rows, key=lambda row: row.message_queue), answers.failed)

    async def of_clients(
        self, group: str, topic: str, client_id: str | None = None
    ) -> ByServer[dict[str, dict[MessageQueue, int]]]:
        """The positions that the group's clients hold in memory, by client id (223)."""
        header = GetConsumerStatusHeader(topic=topic, group=group, client_addr=client_id)

        async def ask(address: str) -> dict[str, dict[MessageQueue, int]]:
            reply = await self._calls.ask(
                address,
                RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
                header,
                timeout=RESET_SECONDS,
            )
            return ConsumerStatus.decode(reply.body).consumer_table

        addresses = (await self._calls.masters_of(topic)).values()
        return await self._calls.fan_out.each(addresses, ask)

    async def _queues(self, topic: str, to: ResetPoint, broker: str | None) -> list[MessageQueue]:
        queues = await self._calls.queues_of(topic)
        if not queues:
            raise UsageError(
                f"topic {topic!r} has no queue to read from: its permission forbids it"
            )
        if broker is not None:
            names = sorted({queue.broker_name for queue in queues})
            if broker not in names:
                raise no_such(f"topic {topic!r} at broker", broker, names)
            queues = [queue for queue in queues if queue.broker_name == broker]
        if to.queue_id is not None:
            chosen = [queue for queue in queues if queue.queue_id == to.queue_id]
            if not chosen:
                raise no_such("queue", str(to.queue_id), [str(queue.queue_id) for queue in queues])
            queues = chosen
        return queues

    async def _reset_at(
        self,
        address: str,
        group: str,
        topic: str,
        to: ResetPoint,
        moves: Sequence[OffsetMove],
        force: bool,
    ) -> dict[MessageQueue, int]:
        if to.queue_id is not None:
            return await self._reset_queues(address, group, topic, moves)
        header = ResetOffsetHeader(
            topic=topic,
            group=group,
            timestamp=-1 if to.time_ms is None else to.time_ms,
            is_force=force,
        )
        try:
            return await self._order_reset(address, header)
        except ConsumerNotOnline:
            return await self._commit_all(address, group, _after(moves))
        except BrokerReplyError as error:
            if not _has_no_position(error):
                raise
            await self._check_offline(group, {moves[0].queue.broker_name: address})
            return await self._commit_all(address, group, _after(moves))

    async def _reset_queues(
        self, address: str, group: str, topic: str, moves: Sequence[OffsetMove]
    ) -> dict[MessageQueue, int]:
        """Single queues: RocketMQ 4 does not know how, and would move all the others, too."""
        settings = await read_settings(self._calls, RequestCode.GET_BROKER_CONFIG, address)
        if _SERVER_SIDE_RESET not in settings:
            await self._check_offline(group, {moves[0].queue.broker_name: address})
            return await self._commit_all(address, group, _after(moves))
        found: dict[MessageQueue, int] = {}
        for move in moves:
            header = ResetOffsetHeader(
                topic=topic,
                group=group,
                timestamp=-1,
                is_force=True,
                queue_id=move.queue.queue_id,
                offset=move.after,
            )
            try:
                found |= await self._order_reset(address, header)
            except ConsumerNotOnline:
                found |= await self._commit_all(address, group, _after([move]))
        return found

    async def _order_reset(
        self, address: str, header: ResetOffsetHeader
    ) -> dict[MessageQueue, int]:
        reply = await self._calls.ask(
            address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header, timeout=RESET_SECONDS
        )
        return dict(ResetOffsets.decode(reply.body).offset_table)

    async def _commit_all(
        self, address: str, group: str, offsets: Mapping[MessageQueue, int]
    ) -> dict[MessageQueue, int]:
        # One by one: RocketMQ may lose one of two simultaneous commits of a group that is new in a topic
        # (ConsumerOffsetManager.commitOffset).
        for queue, offset in offsets.items():
            await self._commit_at(address, group, queue, offset)
        return dict(offsets)

    async def _commit_at(self, address: str, group: str, queue: MessageQueue, offset: int) -> None:
        header = UpdateConsumerOffsetHeader(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
            broker_name=queue.broker_name,
        )
        await self._calls.ask(address, RequestCode.UPDATE_CONSUMER_OFFSET, header)

    async def _check_offline(self, group: str, addresses: Mapping[str, str]) -> None:
        """Raises UsageError if a broker knows a client of the group."""
        members = await self._progress.members(group, addresses.values())
        if members:
            raise UsageError(
                f"group {group!r} is online ({', '.join(members[:3])}): stop its consumers first, "
                "they would commit their own positions again; or reset by time"
            )


def _after(moves: Sequence[OffsetMove]) -> dict[MessageQueue, int]:
    return {move.queue: move.after for move in moves}


def _has_no_position(error: BrokerReplyError) -> bool:
    """RocketMQ 4 takes a group that never committed in a topic for one that does not exist."""
    text = (error.remark or "").lower()
    return (
        error.code == ResponseCode.SYSTEM_ERROR and "consumer group" in text and "not exist" in text
    )
