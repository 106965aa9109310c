"""What waits in the system's own topics: delayed and timed messages, and open transactions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from cometmq.admin.admin import Admin
from cometmq.client.errors import NoRoute
from cometmq.dashboard.bodies.common import Changed, Place, Remark, SiteQuery
from cometmq.dashboard.bodies.operations import (
    OpenTransaction,
    OpenTransactions,
    Recall,
    Waiting,
    WaitingQuery,
    WaitingView,
)
from cometmq.dashboard.call import Call
from cometmq.dashboard.decoding.body_text import Bodies
from cometmq.dashboard.problems import Problem
from cometmq.dashboard.views.parts.message_rows import schema_topic
from cometmq.dashboard.views.parts.remarks import remark
from cometmq.dashboard.views.parts.search import Found, newest_first
from cometmq.dashboard.watch.site import Site
from cometmq.model.messages.properties import (
    PRODUCER_GROUP,
    REAL_TOPIC,
    TIMER_DELIVER_MS,
    TRANSACTION_CHECK_TIMES,
)
from cometmq.model.messages.recall_handle import RecallHandle, decode_recall_handle
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.messages.timer_properties import TIMER_DELETE_KEY, TIMER_OUT_MS
from cometmq.model.names import HALF_OP_TOPIC, HALF_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC
from cometmq.protocol.reply_errors import NoPermission

T = TypeVar("T")
_Place = tuple[str, int, int]
"""Broker, queue and offset."""

SCAN_MAX: Final = 2000
DELAY_LEVELS: Final = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
"""RocketMQ's, unless a broker tells others."""
_UNITS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LEVEL: Final = re.compile(r"(\d{1,9})([smhd])")


async def waiting(call: Call[WaitingQuery, None]) -> WaitingView:
    query, now_ms = call.query, call.desk.clock.wall_ms()
    levels, bodies = _levels(call.site), call.desk.bodies
    rows: list[Waiting] = []
    notes: list[Remark] = []
    scanned = 0
    for topic in (TIMER_TOPIC, SCHEDULE_TOPIC):
        found = await _newest(call.admin, topic, partial(_scheduled, levels, bodies))
        scanned += found.scanned
        if found.cursor:
            notes.append(remark("newest_only", scanned=found.scanned, topic=topic))
        recalled = {one.deletes for one in found.rows}
        for one in found.rows:
            row = one.row
            is_recalled = (
                one.deletes is not None
                or row.message_id in recalled
                or f"{row.topic}_{row.message_id}" in recalled
            )
            if row.due_ms <= now_ms or is_recalled:
                continue
            if query.topic and row.topic != query.topic:
                continue
            rows.append(row)
    rows.sort(key=lambda row: row.due_ms)
    if len(rows) > query.size:
        notes.append(remark("more_wait", left=len(rows) - query.size))
    return WaitingView(rows=rows[: query.size], scanned=scanned, notes=notes)


@dataclass(frozen=True, slots=True)
class _Scheduled:
    """``deletes`` is set if it only says that another one is taken back."""

    row: Waiting
    deletes: str | None


def _scheduled(levels: list[int], bodies: Bodies, message: ReceivedMessage) -> _Scheduled:
    row = _waiting(message, _due_ms(message, levels), bodies)
    return _Scheduled(row, message.properties.get(TIMER_DELETE_KEY))


async def recall(call: Call[SiteQuery, Recall]) -> Changed:
    handle = decode_recall_handle(call.body.handle)
    try:
        message_id = await call.admin.messages.recall(call.body.topic, call.body.handle)
    except NoPermission as error:
        raise Problem(
            403,
            "refused_by_server",
            str(error),
            hint="RocketMQ's brokers take nothing back unless recallMessageEnable=true",
        ) from error
    what = f"will not be delivered to {handle.topic}"
    return Changed(done=[Place(where=message_id or handle.unique_key, what=what)])


async def transactions(call: Call[WaitingQuery, None]) -> OpenTransactions:
    """Half messages without a mark that says they were decided."""
    halves = await _newest(call.admin, HALF_TOPIC, partial(_half, call.desk.bodies))
    marks = await _newest(call.admin, HALF_OP_TOPIC, _decided)
    decided = {place for places in marks.rows for place in places}
    rows = [
        row
        for place, row in halves.rows
        if place not in decided and call.query.topic in ("", row.topic)
    ]
    notes = []
    if halves.cursor:
        notes.append(remark("newest_only", scanned=halves.scanned, topic=HALF_TOPIC))
    return OpenTransactions(rows=rows[: call.query.size], scanned=halves.scanned, notes=notes)


def _half(bodies: Bodies, message: ReceivedMessage) -> tuple[_Place, OpenTransaction]:
    checks = message.properties.get(TRANSACTION_CHECK_TIMES, "0")
    row = OpenTransaction(
        message_id=message.message_id,
        topic=_real_topic(message),
        producer_group=message.properties.get(PRODUCER_GROUP, ""),
        keys=list(message.keys),
        stored_ms=message.store_timestamp,
        checks=int(checks) if checks.isdecimal() and len(checks) < 10 else 0,
        preview=bodies.preview(bytes(message.body), schema_topic(message)),
    )
    return (message.broker_name, message.queue_id, message.queue_offset), row


def _decided(mark: ReceivedMessage) -> list[_Place]:
    """Where the half messages are that a mark says are decided."""
    return [
        (mark.broker_name, mark.queue_id, int(text))
        for text in bytes(mark.body).decode("ascii", "replace").split(",")
        if text.isdecimal() and len(text) < 19
    ]


async def _newest(admin: Admin, topic: str, keep: Callable[[ReceivedMessage], T]) -> Found[T]:
    try:
        ranges = await admin.messages.ranges(topic)
    except NoRoute:
        return Found([], 0, "")
    return await newest_first(
        admin,
        ranges,
        expression="*",
        is_wanted=lambda one: True,
        keep=keep,
        size=SCAN_MAX,
        scan_max=SCAN_MAX,
        cursor="",
    )


def _due_ms(message: ReceivedMessage, levels: list[int]) -> int:
    """When it is delivered: a timed message says so, a delayed one's queue is its level."""
    out = message.properties.get(TIMER_DELIVER_MS) or message.properties.get(TIMER_OUT_MS, "")
    if out.isdecimal() and len(out) < 19:
        return int(out)
    if message.topic == SCHEDULE_TOPIC and 0 <= message.queue_id < len(levels):
        return message.store_timestamp + levels[message.queue_id]
    return 0


def _levels(site: Site) -> list[int]:
    for one in site.snapshot.brokers:
        text = one.settings.get("messageDelayLevel", "")
        found = [_LEVEL.fullmatch(part) for part in text.split()]
        if found and all(found):
            return [int(match[1]) * _UNITS[match[2]] for match in found if match]
    return [
        int(match[1]) * _UNITS[match[2]]
        for part in DELAY_LEVELS.split()
        if (match := _LEVEL.fullmatch(part))
    ]


def _waiting(message: ReceivedMessage, due_ms: int, bodies: Bodies) -> Waiting:
    topic = _real_topic(message)
    handle = ""
    if message.topic == TIMER_TOPIC:
        handle = RecallHandle(topic, message.broker_name, due_ms, message.message_id).encode()
    return Waiting(
        message_id=message.message_id,
        topic=topic,
        keys=list(message.keys),
        tags=message.tags or "",
        stored_ms=message.store_timestamp,
        due_ms=due_ms,
        body_bytes=len(message.body),
        preview=bodies.preview(bytes(message.body), schema_topic(message)),
        recall=handle,
    )


def _real_topic(message: ReceivedMessage) -> str:
    return message.properties.get(REAL_TOPIC, "")


HANDLERS: Final = {"waiting": waiting, "recall": recall, "transactions": transactions}
