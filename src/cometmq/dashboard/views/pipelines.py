"""Spark pipelines that run or ran, as they reported themselves."""

from __future__ import annotations

from typing import Final

from cometmq.admin.pipeline_report import NAMESPACE, RUNNING, read_reports
from cometmq.dashboard.bodies.common import SiteQuery
from cometmq.dashboard.bodies.operations import Pipeline, Pipelines
from cometmq.dashboard.call import Call
from cometmq.dashboard.views.parts.remarks import remark

SILENT_MS: Final = 60_000
SILENT: Final = "silent"
"""It says that it runs, but has said nothing for a while: it was killed, or cannot reach the name servers."""
ROWS_MAX: Final = 1000


async def pipelines(call: Call[SiteQuery, None]) -> Pipelines:
    values = await call.admin.kv.of_namespace(NAMESPACE)
    reports = read_reports(values.values())
    now_ms = call.desk.clock.wall_ms()
    rows = [
        Pipeline(
            name=one.name,
            state=SILENT
            if one.state == RUNNING and now_ms - one.reported_ms > SILENT_MS
            else one.state,
            topic=", ".join(one.topics),
            group="",
            lag=one.lag,
            rows_per_second=one.rows_per_second,
            started_ms=one.started_ms,
            reported_ms=one.reported_ms,
            last_error=one.last_error,
        )
        for one in reports
    ]
    left = len(values) - len(reports)
    notes = [remark("reports_unreadable", reports=left)] if left else []
    return Pipelines(rows=rows[:ROWS_MAX], notes=notes)


HANDLERS: Final = {"pipelines": pipelines}
