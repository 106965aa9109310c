"""The way of a message: what its record, its retries, its dead letters and traces tell, oldest first."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from cometmq.admin.admin import Admin
from cometmq.admin.messages.fate import TrackType
from cometmq.admin.messages.traces import MessageTrace
from cometmq.base.errors import CometError
from cometmq.client.errors import NoRoute
from cometmq.dashboard.bodies.common import Remark
from cometmq.dashboard.bodies.messages import TraceStep, TraceView
from cometmq.dashboard.views.parts.remarks import remark
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import DLQ_PREFIX, RETRY_PREFIX
from cometmq.model.trace import EndTransactionTrace, PubTrace

GROUPS_MAX: Final = 20

STORED, SENT, TRANSACTION, CONSUMED, RETRIED, DEAD_LETTER = (
    *("stored", "sent", "transaction"),
    *("consumed", "retried", "dead_letter"),
)


async def time_line(admin: Admin, message: ReceivedMessage) -> TraceView:
    notes: list[Remark] = []
    steps = [_stored(message)]
    groups: list[str] = []
    try:
        told = await admin.topics.groups(message.topic)
        groups = list(told)[:GROUPS_MAX]
        if len(told) > GROUPS_MAX:
            notes.append(remark("groups_cut", asked=GROUPS_MAX, groups=len(told)))
        if told.failed:
            notes.append(remark("groups_silent", brokers=len(told.failed)))
    except CometError as error:
        notes.append(remark("groups_unknown", problem=str(error)))
    traces = await _traces(admin, message)
    found = await asyncio.gather(*(_copies(admin, message, group) for group in groups))
    traced: set[str] = set()
    if isinstance(traces, Remark):
        notes.append(traces)
    else:
        told_steps = list(_of_traces(traces))
        traced = {step.group for step in told_steps if step.kind == CONSUMED}
        steps += told_steps
    for part in found:
        steps += part
    steps += await _fates(admin, message, traced, notes)
    steps.sort(key=lambda step: step.at_ms or 2**62)
    return TraceView(message_id=message.message_id, steps=steps, notes=notes)


def _stored(message: ReceivedMessage) -> TraceStep:
    took = message.store_timestamp - message.born_timestamp
    return TraceStep(
        at_ms=message.store_timestamp,
        kind=STORED,
        group="",
        client=message.born_host,
        ok=True,
        duration_ms=max(took, 0) if message.born_timestamp else None,
        remark=remark(
            "stored_at",
            server=message.store_host,
            queue_id=message.queue_id,
            offset=message.queue_offset,
        ),
    )


async def _traces(admin: Admin, message: ReceivedMessage) -> MessageTrace | Remark:
    """What clients reported, or why nothing is known."""
    try:
        return await admin.traces.of_message(message.message_id)
    except NoRoute:
        return remark("no_traces")
    except CometError as error:
        return remark("traces_unread", problem=str(error))


def _of_traces(trace: MessageTrace) -> Iterator[TraceStep]:
    for row in trace.rows:
        record = row.record
        if isinstance(record, PubTrace):
            yield TraceStep(
                at_ms=record.timestamp,
                kind=SENT,
                group=record.group or "",
                client=row.client,
                ok=record.is_success,
                duration_ms=record.cost_ms,
                remark=remark("was_sent" if record.is_success else "send_failed"),
            )
        elif isinstance(record, EndTransactionTrace):
            yield TraceStep(
                at_ms=record.timestamp,
                kind=TRANSACTION,
                group=record.group or "",
                client=row.client,
                ok=True,
                duration_ms=None,
                remark=remark("transaction_ended", state=str(record.state)),
            )
    for one in trace.consumptions:
        after = one.after
        retry = one.before.retry_times
        if after is None:
            said = _tried("listener_open", "listener_open_on_retry", retry)
        elif after.is_success:
            said = _tried("was_consumed", "consumed_on_retry", retry)
        else:
            result = after.context_code.name
            said = _tried("listener_failed", "listener_failed_on_retry", retry, result=result)
        yield TraceStep(
            at_ms=one.before.timestamp,
            kind=CONSUMED,
            group=one.before.group or "",
            client=one.client,
            ok=after is None or after.is_success,
            duration_ms=after.cost_ms if after else None,
            remark=said,
        )


def _tried(first: str, again: str, retry: int, **params: str) -> Remark:
    return remark(again, retry=retry, **params) if retry else remark(first, **params)


async def _copies(admin: Admin, message: ReceivedMessage, group: str) -> list[TraceStep]:
    """Its retries and dead letters in a group: copies with the same unique id."""
    steps = []
    for prefix, kind in ((RETRY_PREFIX, RETRIED), (DLQ_PREFIX, DEAD_LETTER)):
        try:
            found = await admin.messages.all_by_id(f"{prefix}{group}", message.message_id)
        except CometError:
            continue  # most groups have no such topic
        for one in found:
            said = (
                remark("retry_stored", retry=one.reconsume_times)
                if kind == RETRIED
                else remark("given_up", attempts=one.reconsume_times)
            )
            steps.append(
                TraceStep(
                    at_ms=one.store_timestamp,
                    kind=kind,
                    group=group,
                    client="",
                    ok=kind == RETRIED,
                    duration_ms=None,
                    remark=said,
                )
            )
    return steps


async def _fates(
    admin: Admin, message: ReceivedMessage, traced: set[str], notes: list[Remark]
) -> list[TraceStep]:
    """What positions tell of groups that reported nothing; without a time."""
    try:
        tracks = await admin.messages.tracks(message)
    except CometError as error:
        notes.append(remark("positions_unknown", problem=str(error)))
        return []
    return [
        TraceStep(
            at_ms=0,
            kind=CONSUMED,
            group=one.group,
            client="",
            ok=one.track_type in (TrackType.CONSUMED, TrackType.CONSUMED_BUT_FILTERED),
            duration_ms=None,
            remark=remark("by_position_because", state=str(one.track_type), problem=one.reason)
            if one.reason
            else remark("by_position", state=str(one.track_type)),
        )
        for one in tracks
        if one.group not in traced
    ]
