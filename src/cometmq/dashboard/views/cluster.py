"""Brokers, name servers, controllers, and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cometmq.admin.target import Target
from cometmq.base.settings import Row, render
from cometmq.broker.config.broker_config import broker_rows
from cometmq.controller.controller_config import controller_rows
from cometmq.dashboard.bodies.cluster import (
    BrokerOfList,
    BrokerView,
    ClusterView,
    ControllerOfList,
    Election,
    NameServerOfList,
    NewSettings,
    Setting,
    Settings,
    WritePermission,
)
from cometmq.dashboard.bodies.common import Changed, Place, SiteQuery
from cometmq.dashboard.call import Call
from cometmq.dashboard.problems import bad_request, not_found
from cometmq.dashboard.views.parts.changes import changed
from cometmq.dashboard.views.parts.remarks import remark
from cometmq.dashboard.watch.figures import series_name, slave_lag
from cometmq.dashboard.watch.site import Site
from cometmq.dashboard.watch.snapshot import BrokerState, Snapshot
from cometmq.namesrv.namesrv_config import namesrv_rows

LIVE, NEXT_START, NEVER, UNKNOWN = "live", "next_start", "never", "unknown"
_OURS: Final = "filterFunctionDirectory"
"""A setting that only our brokers have: what they say about changes is known then."""


async def cluster(call: Call[SiteQuery, None]) -> ClusterView:
    site = call.site
    snapshot = await site.seen()
    servers = [
        NameServerOfList(address=address, answers=not problem, problem=problem)
        for address, problem in site.rounds.name_servers.items()
    ]
    controllers = [
        ControllerOfList(
            address=one.address,
            answers=not one.problem,
            is_leader=one.is_leader,
            problem=one.problem,
        )
        for one in site.rounds.controllers
    ]
    return ClusterView(
        as_of_ms=snapshot.at_ms,
        incomplete=list(snapshot.gaps),
        clusters=list(snapshot.clusters),
        brokers=[broker_row(site, snapshot, one) for one in snapshot.brokers],
        name_servers=servers,
        controllers=controllers,
    )


async def broker(call: Call[SiteQuery, None]) -> BrokerView:
    snapshot = await call.site.seen()
    state = _found(call, snapshot)
    table = dict(state.figures.table) if state.figures else {}
    return BrokerView(
        as_of_ms=snapshot.at_ms,
        incomplete=list(snapshot.gaps),
        broker=broker_row(call.site, snapshot, state),
        runtime=dict(sorted(table.items())),
    )


async def broker_settings(call: Call[SiteQuery, None]) -> Settings:
    snapshot = await call.site.seen()
    state = _found(call, snapshot)
    told = await call.admin.brokers.settings(Target(address=state.place.address))
    told.raise_failed("reading the settings")
    values = told.done[state.place.address]
    known = broker_rows() if _OURS in values else {}
    return Settings(as_of_ms=call.desk.clock.wall_ms(), rows=setting_rows(values, known))


async def change_broker_settings(call: Call[SiteQuery, NewSettings]) -> Changed:
    state = _found(call, await call.site.seen())
    target = Target(address=state.place.address)
    done = await call.admin.brokers.update_settings(call.body.values, target)
    answer = changed(done, "changed " + ", ".join(sorted(call.body.values)))
    answer.notes = [remark("server_said", words=words) for words in done.values() if words]
    return answer


async def write_permission(call: Call[SiteQuery, WritePermission]) -> Changed:
    name = call.names["broker"]
    snapshot = await call.site.seen()
    if name not in {one.place.broker_name for one in snapshot.brokers}:
        raise not_found("broker", name)
    servers = call.admin.name_servers
    if call.body.allowed:
        return changed(await servers.add_write_perm(name), f"clients send to {name} again")
    return changed(await servers.wipe_write_perm(name), f"clients send nothing more to {name}")


async def name_server_settings(call: Call[SiteQuery, None]) -> Settings:
    told = await call.admin.name_servers.settings()
    if not told.done:
        told.raise_failed("reading the settings of the name servers")
    tables = list(told.done.items())
    known = dict(namesrv_rows()) | dict(controller_rows())
    first = dict(tables[0][1])
    rows = setting_rows(first, known if _is_ours(first) else {})
    for address, values in tables[1:]:
        different = {key: text for key, text in values.items() if first.get(key) != text}
        for row in setting_rows(different, known if _is_ours(values) else {}):
            row.key = f"{address} {row.key}"
            rows.append(row)
    return Settings(as_of_ms=call.desk.clock.wall_ms(), rows=rows)


async def elect(call: Call[SiteQuery, Election]) -> Changed:
    name = call.names["broker"]
    call.confirmed(call.body.confirm, name)
    if not call.site.controllers:
        raise bad_request("no controller is known", hint="set controllerAddr of the dashboard")
    snapshot = await call.site.seen()
    clusters = {one.place.cluster for one in snapshot.brokers if one.place.broker_name == name}
    if not clusters:
        raise not_found("broker", name)
    election = await call.admin.controllers.elect(min(clusters), name, call.body.broker_id)
    elected = election.master.master_address or "nobody"
    return Changed(done=[Place(where=name, what=f"{elected} is the master")])


def broker_row(site: Site, snapshot: Snapshot, state: BrokerState) -> BrokerOfList:
    place, figures = state.place, state.figures
    if state.silent_since_ms is not None:
        figures = None
    return BrokerOfList(
        cluster=place.cluster,
        name=place.broker_name,
        id=place.broker_id,
        address=place.address,
        is_master=place.is_master,
        answers=state.silent_since_ms is None,
        silent_since_ms=state.silent_since_ms,
        version=state.figures.version if state.figures else "",
        put_tps=figures.put_tps if figures else None,
        get_tps=figures.get_tps if figures else None,
        put_today=figures.put_today if figures else None,
        get_today=figures.get_today if figures else None,
        disk_ratio=figures.disk_ratio if figures else None,
        earliest_message_ms=figures.earliest_message_ms if figures else None,
        slave_lag_bytes=None if place.is_master else slave_lag(snapshot, state),
        in_sync=state.in_sync,
        put_trend=site.trends.of(f"broker:{series_name(state)}:put_tps"),
    )


def setting_rows(values: Mapping[str, str], known: Mapping[str, Row]) -> list[Setting]:
    """Args: known: the rows of our own server; empty for RocketMQ's."""
    rows = []
    for key in sorted(values):
        row = known.get(key)
        if row is None:
            rows.append(
                Setting(
                    key=key,
                    value=values[key],
                    change=NEVER if known else UNKNOWN,
                    help="",
                    default=None,
                    is_default=None,
                    choices=[],
                )
            )
            continue
        default = render(row.default)
        rows.append(
            Setting(
                key=key,
                value=values[key],
                change=LIVE if row.live else NEXT_START if row.next_start else NEVER,
                help=row.help,
                default=default,
                is_default=values[key] == default,
                choices=["true", "false"] if row.kind is bool else list(row.choices),
            )
        )
    return rows


def _is_ours(values: Mapping[str, str]) -> bool:
    return "topicQueuesMax" in values


def _found(call: Call[SiteQuery, object], snapshot: Snapshot) -> BrokerState:
    name, number = call.names["broker"], call.names["id"]
    if not number.isdecimal() or len(number) > 10:
        raise bad_request(f"expected the id of a broker, got {number!r}", field="id")
    state = snapshot.broker(name, int(number))
    if state is None:
        raise not_found("broker", f"{name}/{number}")
    return state


HANDLERS: Final = {
    "cluster": cluster,
    "broker": broker,
    "broker_settings": broker_settings,
    "change_broker_settings": change_broker_settings,
    "write_permission": write_permission,
    "name_server_settings": name_server_settings,
    "elect": elect,
}
