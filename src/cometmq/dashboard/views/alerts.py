"""Alerts: what fires, what did, rules and silences."""

from __future__ import annotations

from typing import Final

from cometmq.dashboard.bodies.common import Changed, Place, SiteQuery
from cometmq.dashboard.bodies.operations import AlertsView, NewRule, Silence
from cometmq.dashboard.call import Call


async def alerts(call: Call[SiteQuery, None]) -> AlertsView:
    book = call.desk.alerts
    states = book.states(call.site.name)
    return AlertsView(
        firing=states.firing,
        history=list(states.history),
        rules=book.rules,
        webhook=bool(book.webhook),
    )


async def put_rule(call: Call[SiteQuery, NewRule]) -> Changed:
    await call.desk.alerts.put(call.body)
    return Changed(done=[Place(where=call.body.name, what="the rule is in force")])


async def delete_rule(call: Call[SiteQuery, None]) -> Changed:
    await call.desk.alerts.remove(call.names["rule"])
    return Changed(done=[Place(where=call.names["rule"], what="the rule is gone")])


async def silence(call: Call[SiteQuery, Silence]) -> Changed:
    given = call.body
    await call.desk.alerts.silence(call.site.name, given.rule, given.subject, given.minutes)
    what = f"silenced for {given.minutes} minutes" if given.minutes else "no longer silenced"
    return Changed(done=[Place(where=f"{given.rule}: {given.subject}", what=what)])


HANDLERS: Final = {
    "alerts": alerts,
    "put_rule": put_rule,
    "delete_rule": delete_rule,
    "silence": silence,
}
