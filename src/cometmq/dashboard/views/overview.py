"""The first page, charts, and the stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from cometmq.dashboard.bodies.common import SiteQuery
from cometmq.dashboard.bodies.overview import (
    EventsQuery,
    History,
    HistoryQuery,
    HistorySeries,
    LaggingGroup,
    Overview,
    Totals,
)
from cometmq.dashboard.call import Call, Stream
from cometmq.dashboard.contract.table import EVENT_STREAM
from cometmq.dashboard.desk import Desk
from cometmq.dashboard.problems import bad_request
from cometmq.dashboard.views.parts.tail import follow
from cometmq.dashboard.views.parts.wanted import wanted
from cometmq.dashboard.watch import hub
from cometmq.dashboard.watch.figures import dead_letters
from cometmq.dashboard.watch.health import health_of, is_behind, problems_of
from cometmq.dashboard.watch.site import Site
from cometmq.dashboard.watch.snapshot import SYSTEM, Snapshot

LAGGING_MAX: Final = 10
SERIES_MAX: Final = 20


async def overview(call: Call[SiteQuery, None]) -> Overview:
    snapshot = await call.site.seen()
    interval_ms = call.desk.config.sample_interval_ms
    return call.site.once("overview", lambda: _overview(call.site, snapshot, interval_ms))


def _overview(site: Site, snapshot: Snapshot, interval_ms: int) -> Overview:
    problems = problems_of(site)
    return Overview(
        as_of_ms=snapshot.at_ms,
        incomplete=list(snapshot.gaps),
        health=health_of(problems),
        problems=problems,
        totals=_totals(site, snapshot),
        lagging=_lagging(site, snapshot),
        sampling_ms=interval_ms,
    )


async def history(call: Call[HistoryQuery, None]) -> History:
    query = call.query
    names = [name for name in query.series.split(",") if name]
    if not 0 < len(names) <= SERIES_MAX:
        raise bad_request(f"expected 1 to {SERIES_MAX} series, got {len(names)}", field="series")
    now_ms = call.desk.clock.wall_ms()
    points = await asyncio.to_thread(
        call.desk.history.read,
        [f"{call.site.name}/{name}" for name in names],
        now_ms - query.minutes * 60_000,
        now_ms,
        query.points,
    )
    rows = [
        HistorySeries(series=name, points=found) for name, found in zip(names, points, strict=True)
    ]
    return History(rows=rows)


async def events(call: Call[EventsQuery, None]) -> Stream:
    stream = call.desk.hub.open(call.site.name)
    tail = None
    if call.query.tail_topic:
        try:
            tail = asyncio.create_task(
                await follow(
                    call.admin,
                    call.desk.bodies,
                    stream,
                    topic=call.query.tail_topic,
                    expression=call.query.tail_filter,
                    expression_type=call.query.tail_filter_type,
                    is_wanted=wanted(
                        call.desk.bodies,
                        having=call.query.tail_property,
                        text=call.query.tail_text,
                    ),
                )
            )
        except BaseException:
            call.desk.hub.close(stream)
            raise
    snapshot = call.site.snapshot
    stream.put(hub.event("snapshot", {"as_of_ms": snapshot.at_ms, "site": call.site.name}))
    return Stream(parts=_parts(call.desk, stream, tail), media_type=EVENT_STREAM)


async def _parts(
    desk: Desk, stream: hub.Stream, tail: asyncio.Task[None] | None
) -> AsyncIterator[bytes]:
    try:
        async for part in stream.parts():
            yield part
    finally:
        desk.hub.close(stream)
        if tail is not None:
            tail.cancel()


def _totals(site: Site, snapshot: Snapshot) -> Totals:
    told = [one.figures for one in snapshot.brokers if one.figures and one.silent_since_ms is None]
    masters = [
        one.figures for one in snapshot.masters if one.figures and one.silent_since_ms is None
    ]
    replicas = [one for one in snapshot.brokers if not one.place.is_master]
    return Totals(
        brokers=len(snapshot.brokers),
        brokers_silent=sum(one.silent_since_ms is not None for one in snapshot.brokers),
        replicas=len(replicas),
        replicas_behind=sum(is_behind(snapshot, one) for one in replicas),
        topics=sum(snapshot.kind_of(name) != SYSTEM for name in snapshot.topics),
        groups=len(snapshot.groups),
        groups_lagging=sum(group.lag > 0 for group in snapshot.groups.values()),
        lag=sum(group.lag for group in snapshot.groups.values()),
        dead_letters=sum(dead_letters(snapshot, site.status).values()),
        put_tps=sum(one.put_tps for one in masters),
        get_tps=sum(one.get_tps for one in masters),
        put_today=sum(one.put_today for one in masters),
        get_today=sum(one.get_today for one in masters),
        disk_ratio=max((one.disk_ratio for one in told), default=0.0),
    )


def _lagging(site: Site, snapshot: Snapshot) -> list[LaggingGroup]:
    behind = [(name, group) for name, group in snapshot.groups.items() if group.lag > 0]
    behind.sort(key=lambda item: item[1].lag, reverse=True)
    rows = []
    for name, group in behind[:LAGGING_MAX]:
        found = site.members.get(name)
        rows.append(
            LaggingGroup(
                name=name,
                lag=group.lag,
                lag_ms=site.lag_ages.get(name),
                members=found.value.count if found else None,
                trend=site.trends.of(f"group:{name}:lag"),
            )
        )
    return rows


HANDLERS: Final = {"overview": overview, "history": history, "events": events}
