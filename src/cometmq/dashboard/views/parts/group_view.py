"""Everything about one group, put together from what several servers and its members say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cometmq.admin.admin import Admin
from cometmq.admin.groups.group_rows import GroupProgress
from cometmq.base.errors import CometError
from cometmq.dashboard.bodies.groups import (
    GroupAtBroker,
    GroupView,
    Member,
    QueueOfGroup,
    Subscription,
)
from cometmq.dashboard.views.parts.gaps import gaps_of
from cometmq.dashboard.views.parts.stuck import why_stuck
from cometmq.dashboard.watch.known import NOBODY, Members
from cometmq.dashboard.watch.online import online as who_is_online
from cometmq.dashboard.watch.site import Site
from cometmq.dashboard.watch.snapshot import GroupState
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import DLQ_PREFIX, check_group
from cometmq.protocol.bodies.connection import ConsumerConnection
from cometmq.protocol.bodies.running import ConsumerRunningInfo

MEMBERS_ASKED_MAX: Final = 16
"""Of more members, only so many are asked what they hold."""
MEMBER_SECONDS: Final = 3.0


@dataclass(slots=True)
class Told:
    """What members say about themselves, by client id."""

    running: dict[str, ConsumerRunningInfo] = field(default_factory=dict)

    def owner(self, queue: MessageQueue) -> str | None:
        for client_id, info in self.running.items():
            if queue in info.mq_table and not info.mq_table[queue].droped:
                return client_id
        return None


async def view_group(site: Site, admin: Admin, group: str, now_ms: int) -> GroupView:
    """Raises NoSuchName: no broker knows the group."""
    check_group(group)
    snapshot = await site.seen()
    progress, found = await asyncio.gather(
        admin.groups.progress(group), who_is_online(admin, group, site.proxies)
    )
    online = found.connection
    if online is not None or not found.failed:
        site.members.put(group, Members.of(online) if online else NOBODY)
    failed = {**found.failed, **progress.failed}
    told = await _running(admin, group, online)
    state = snapshot.groups.get(group) or GroupState()
    letters = snapshot.topics.get(f"{DLQ_PREFIX}{group}")
    count = 0
    if letters is not None:
        fill = site.status.get(f"{DLQ_PREFIX}{group}")
        count = fill.value.message_count if fill and fill.value else 0
    queues = _queues(progress, told, now_ms)
    return GroupView(
        as_of_ms=now_ms,
        incomplete=gaps_of(failed, snapshot),
        name=group,
        lag=max(progress.lag, 0),
        lag_ms=site.lag_ages.get(group) if progress.lag > 0 else None,
        in_flight=progress.in_flight,
        tps=progress.tps,
        dead_letters=count,
        online=online is not None,
        consume_type=(online.consume_type or "") if online else "",
        mode=(online.message_model or "") if online else "",
        consume_from=(online.consume_from_where or "") if online else "",
        members=_members(online, told),
        subscriptions=_subscriptions(online),
        mismatches=_mismatches(online),
        queues=queues,
        definitions=_definitions(state),
        stuck=why_stuck(
            group=group,
            queues=queues,
            online=online,
            running=told.running,
            state=state,
            topics=snapshot.topics,
            failed=gaps_of(failed, snapshot),
            now_ms=now_ms,
        ),
    )


async def _running(admin: Admin, group: str, online: ConsumerConnection | None) -> Told:
    """Members that do not answer are left out: the page does not wait for them."""
    told = Told()
    members = [one.client_id for one in online.connection_set] if online else []

    async def one(client_id: str) -> None:
        try:
            async with asyncio.timeout(MEMBER_SECONDS):
                told.running[client_id] = await admin.connections.running_info(group, client_id)
        except (CometError, TimeoutError):
            return

    await asyncio.gather(*(one(name) for name in members[:MEMBERS_ASKED_MAX]))
    return told


def _queues(progress: GroupProgress, told: Told, now_ms: int) -> list[QueueOfGroup]:
    return [
        QueueOfGroup(
            topic=row.queue.topic,
            broker=row.queue.broker_name,
            queue_id=row.queue.queue_id,
            broker_offset=row.broker_offset,
            consumer_offset=row.consumer_offset,
            lag=row.lag,
            in_flight=row.in_flight,
            consumed_ms=row.consumed_ms,
            lag_ms=max(now_ms - row.consumed_ms, 0) if row.lag > 0 and row.consumed_ms else None,
            owner=told.owner(row.queue),
        )
        for row in progress.queues
    ]


def _members(online: ConsumerConnection | None, told: Told) -> list[Member]:
    return [
        Member(
            client_id=one.client_id,
            address=one.client_addr,
            language=one.language or "",
            version=str(one.version),
            queues=len(told.running[one.client_id].mq_table)
            if one.client_id in told.running
            else None,
        )
        for one in (online.connection_set if online else [])
    ]


def _subscriptions(online: ConsumerConnection | None) -> list[Subscription]:
    table: Mapping[str, object] = online.subscription_table if online else {}
    return [
        Subscription(
            topic=topic,
            expression=getattr(one, "sub_string", "") or "",
            expression_type=getattr(one, "expression_type", "") or "",
        )
        for topic, one in sorted(table.items())
    ]


def _mismatches(online: ConsumerConnection | None) -> list[str]:
    found = (online.subscription_mismatch or []) if online else []
    texts = []
    for one in found:
        camps = "; ".join(
            f"{', '.join(camp.client_ids[:3])}: {camp.sub_string or 'none'}" for camp in one.camps
        )
        texts.append(f"{one.topic}: {camps}")
    return texts


def _definitions(state: GroupState) -> list[GroupAtBroker]:
    return [
        GroupAtBroker(
            broker=broker,
            enabled=one.consume_enable,
            orderly=bool(one.consume_message_orderly),
            broadcast=one.consume_broadcast_enable,
            retries=one.retry_max_times,
            retry_queues=one.retry_queue_nums,
            timeout_minutes=one.consume_timeout_minute or 15,
        )
        for broker, one in state.by_broker.items()
    ]
