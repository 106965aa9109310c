"""Groups: list, look, create, delete, clients, resets."""

from __future__ import annotations

from typing import Final

from cometmq.admin.groups.reset_plan import OffsetMove, ResetPoint
from cometmq.admin.target import Target
from cometmq.dashboard.bodies.common import Changed, Failure, Page, Place, SiteQuery
from cometmq.dashboard.bodies.groups import (
    ClientQuery,
    ClientQueue,
    ClientRate,
    ClientView,
    ConfirmedReset,
    GroupConfirmed,
    GroupOfList,
    GroupsQuery,
    GroupView,
    Move,
    NewGroup,
    Reset,
    ResetPreview,
)
from cometmq.dashboard.call import Call
from cometmq.dashboard.problems import bad_request
from cometmq.dashboard.views.parts.changes import changed
from cometmq.dashboard.views.parts.group_view import view_group
from cometmq.dashboard.views.parts.lists import matches, page_of_rows
from cometmq.dashboard.watch.online import online
from cometmq.dashboard.watch.site import Site
from cometmq.dashboard.watch.snapshot import GroupState, Snapshot
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.names import DLQ_PREFIX, RETRY_PREFIX, check_group

STACK_CHARS_MAX: Final = 200_000


async def groups(call: Call[GroupsQuery, None]) -> Page[GroupOfList]:
    site, query = call.site, call.query
    snapshot = await site.seen()
    rows = [
        row
        for row in site.once("groups", lambda: _rows(site, snapshot))
        if matches(row.name, query.q) and _is_wanted(row, query.state)
    ]
    page = page_of_rows(rows, query, snapshot, sort="name", kind=GroupOfList)
    for row in page.rows:
        row.trend = site.trends.of(f"group:{row.name}:lag")
    return page


async def group(call: Call[SiteQuery, None]) -> GroupView:
    return await view_group(call.site, call.admin, call.names["group"], call.desk.clock.wall_ms())


async def create_group(call: Call[SiteQuery, NewGroup]) -> Changed:
    given = call.body
    check_group(given.name)
    if given.cluster and given.broker:
        raise bad_request("expected a cluster or a broker, got both", field="broker")
    config = SubscriptionGroupConfig(
        group_name=given.name,
        consume_enable=given.enabled,
        consume_message_orderly=given.orderly or None,
        consume_broadcast_enable=given.broadcast,
        retry_max_times=given.retries,
        retry_queue_nums=given.retry_queues,
        consume_timeout_minute=given.timeout_minutes,
    )
    target = Target(cluster=given.cluster or None, broker=given.broker or None)
    return changed(await call.admin.groups.create(config, target), f"defined {given.name}")


async def delete_group(call: Call[SiteQuery, GroupConfirmed]) -> Changed:
    name = call.names["group"]
    call.confirmed(call.body.confirm, name)
    done = await call.admin.groups.delete(
        name, Target(cluster=call.body.cluster or None), remove_offsets=call.body.remove_offsets
    )
    return changed(done, f"deleted {name}")


async def client(call: Call[ClientQuery, None]) -> ClientView:
    told = await call.admin.connections.running_info(
        call.names["group"], call.names["client"], with_stacks=call.query.stacks
    )
    return ClientView(
        client_id=call.names["client"],
        properties=dict(sorted(told.properties.items())),
        queues=[
            ClientQueue(
                topic=queue.topic,
                broker=queue.broker_name,
                queue_id=queue.queue_id,
                commit_offset=info.commit_offset,
                cached_messages=info.cached_msg_count,
                locked=info.locked,
                dropped=info.droped,
                last_pull_ms=info.last_pull_timestamp,
                last_consume_ms=info.last_consume_timestamp,
            )
            for queue, info in sorted(told.mq_table.items())
        ],
        rates=[
            ClientRate(
                topic=topic,
                consume_rt_ms=rate.consume_rt,
                ok_tps=rate.consume_ok_tps,
                failed_tps=rate.consume_failed_tps,
                failed_in_hour=rate.consume_failed_msgs,
            )
            for topic, rate in sorted(told.status_table.items())
        ],
        stacks=(told.jstack or "")[:STACK_CHARS_MAX],
    )


async def preview_reset(call: Call[SiteQuery, Reset]) -> ResetPreview:
    name, given = call.names["group"], call.body
    moves = await call.admin.offsets.preview(
        name, given.topic, _point(given), broker=given.broker or None
    )
    return ResetPreview(
        moves=[_move(move) for move in moves],
        again=sum(max(move.again, 0) for move in moves),
        skipped=sum(max(-move.again, 0) for move in moves),
        online=await _is_online(call, name),
    )


async def reset(call: Call[SiteQuery, ConfirmedReset]) -> Changed:
    name, given = call.names["group"], call.body
    call.confirmed(given.confirm, name)
    result = await call.admin.offsets.reset(
        name, given.topic, _point(given), broker=given.broker or None
    )
    return Changed(
        done=[
            Place(where=f"{queue.broker_name}/{queue.queue_id}", what=f"goes on at {offset}")
            for queue, offset in result.offsets.items()
        ],
        failed=[
            Failure(where=address, problem=str(error)) for address, error in result.failed.items()
        ],
    )


def _rows(site: Site, snapshot: Snapshot) -> list[GroupOfList]:
    return [_row(site, name, state) for name, state in snapshot.groups.items()]


def _row(site: Site, name: str, state: GroupState) -> GroupOfList:
    found = site.members.get(name)
    letters = site.status.get(f"{DLQ_PREFIX}{name}")
    count = letters.value.message_count if letters and letters.value else None
    if f"{DLQ_PREFIX}{name}" not in site.snapshot.topics:
        count = 0
    return GroupOfList(
        name=name,
        lag=state.lag,
        lag_ms=site.lag_ages.get(name),
        tps=state.tps,
        members=found.value.count if found else None,
        members_as_of_ms=found.at_ms if found else None,
        mode=found.value.mode if found else "",
        topics=sorted(topic for topic in state.topics if not topic.startswith(RETRY_PREFIX)),
        dead_letters=count,
        brokers=list(state.by_broker),
        trend=[],
    )


def _is_wanted(row: GroupOfList, state: str) -> bool:
    match state:
        case "lagging":
            return row.lag > 0
        case "offline":
            return row.members == 0
        case "online":
            return bool(row.members)
        case _:
            return True


def _point(given: Reset) -> ResetPoint:
    match given.to:
        case "time":
            if given.time_ms is None:
                raise bad_request("expected time_ms, to reset to a time", field="time_ms")
            point = ResetPoint.time(given.time_ms)
        case "beginning":
            point = ResetPoint.beginning()
        case "end":
            point = ResetPoint.end()
        case _:
            if given.offset is None or given.queue_id is None:
                raise bad_request(
                    "expected offset and queue_id, to reset to an offset", field="offset"
                )
            return ResetPoint.at(given.queue_id, given.offset)
    if given.queue_id is None:
        return point
    return ResetPoint(time_ms=point.time_ms, queue_id=given.queue_id)


def _move(move: OffsetMove) -> Move:
    return Move(
        broker=move.queue.broker_name,
        queue_id=move.queue.queue_id,
        before=move.before,
        after=move.after,
        min_offset=move.min_offset,
        max_offset=move.max_offset,
        again=max(move.again, 0),
        skipped=max(-move.again, 0),
    )


async def _is_online(call: Call[SiteQuery, Reset], group: str) -> bool:
    return (await online(call.admin, group, call.site.proxies)).connection is not None


HANDLERS: Final = {
    "groups": groups,
    "create_group": create_group,
    "group": group,
    "delete_group": delete_group,
    "client": client,
    "preview_reset": preview_reset,
    "reset": reset,
}
