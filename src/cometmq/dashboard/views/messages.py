"""Messages: search, look, export, resend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from cometmq.admin.admin import Admin
from cometmq.base.errors import CometError
from cometmq.client.core.consume.expression import Expression, subscription_to
from cometmq.client.core.message_lookup import TIME_MS_MAX
from cometmq.client.errors import MessageNotFound, NoRoute
from cometmq.dashboard.bodies.common import Changed, Place, Remark, SiteQuery
from cometmq.dashboard.bodies.messages import (
    ExportQuery,
    Fate,
    Fates,
    MessageOfList,
    MessageQuery,
    MessagesFound,
    MessagesQuery,
    MessageView,
    Resend,
    TraceView,
)
from cometmq.dashboard.call import Call, File, Stream
from cometmq.dashboard.contract.table import BYTES, JSON_LINES
from cometmq.dashboard.desk import Desk
from cometmq.dashboard.problems import Problem, bad_request
from cometmq.dashboard.views.parts.message_rows import json_line, row_of, schema_topic, view_of
from cometmq.dashboard.views.parts.remarks import remark
from cometmq.dashboard.views.parts.search import Wanted, newest_first
from cometmq.dashboard.views.parts.time_line import time_line
from cometmq.dashboard.views.parts.wanted import wanted
from cometmq.dashboard.watch.site import Site
from cometmq.dashboard.watch.snapshot import NORMAL
from cometmq.model.messages.message import Message
from cometmq.model.messages.properties import RESERVED
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.subscription import Sql

TOPICS_ASKED_MAX: Final = 100
"""A key without a topic is looked up in so many: those that were written to last."""
AT_ONCE: Final = 8
KEYS_MAX: Final = 64


async def messages(call: Call[MessagesQuery, None]) -> MessagesFound:
    query = call.query
    if query.id or query.key:
        return await _by_index(call)
    if not query.topic:
        raise bad_request("expected a topic, an id or a key to look for", field="topic")
    expression = _expression(query.tags, query.sql)
    subscription_to(query.topic, expression)  # says what is wrong with it before anything is asked
    ranges = await call.admin.messages.ranges(
        query.topic,
        begin_ms=query.begin_ms,
        end_ms=query.end_ms,
        broker=query.broker or None,
        queue_id=query.queue_id,
    )
    found = await newest_first(
        call.admin,
        ranges,
        expression=expression,
        is_wanted=_wanted(query, call.desk),
        keep=lambda one: row_of(one, call.desk.bodies),
        size=query.size,
        scan_max=query.scan_max,
        cursor=query.cursor,
    )
    notes = []
    if found.cursor and len(found.rows) < query.size:
        notes.append(remark("search_stopped", scanned=found.scanned))
    return MessagesFound(
        rows=found.rows,
        scanned=found.scanned,
        cursor=found.cursor,
        notes=notes,
    )


async def message(call: Call[MessageQuery, None]) -> MessageView:
    found = await _one(call.admin, call.names["id"], call.query.topic)
    return view_of(found, call.desk.bodies, call.query.format)


async def body(call: Call[MessageQuery, None]) -> File:
    found = await _one(call.admin, call.names["id"], call.query.topic)
    content = bytes(found.body)
    if call.desk.bodies.is_hidden(content, schema_topic(found)):
        raise Problem(
            403, "masked", "a rule hides a part of this body, so it is not given as a whole"
        )
    return File(content=content, media_type=BYTES, file_name=f"{found.message_id}.bin")


async def fate(call: Call[MessageQuery, None]) -> Fates:
    found = await _one(call.admin, call.names["id"], call.query.topic)
    tracks = await call.admin.messages.tracks(found)
    return Fates(
        rows=[Fate(group=one.group, state=one.track_type, reason=one.reason) for one in tracks]
    )


async def trace(call: Call[MessageQuery, None]) -> TraceView:
    found = await _one(call.admin, call.names["id"], call.query.topic)
    return await time_line(call.admin, found)


async def resend(call: Call[SiteQuery, Resend]) -> Changed:
    given = call.body
    if bool(given.to_group) == bool(given.to_topic):
        raise bad_request("expected to_group or to_topic, one of them", field="to_group")
    found = await _one(call.admin, call.names["id"], given.topic)
    if given.to_group:
        sent = await call.admin.messages.resend(found, given.to_group)
        what = f"delivered to group {given.to_group} again"
    else:
        sent = await call.admin.messages.send(_copy(found, given.to_topic))
        what = f"sent to topic {given.to_topic} as {sent.message_id}"
    return Changed(done=[Place(where=found.message_id, what=what)])


async def export_messages(call: Call[ExportQuery, None]) -> Stream:
    query, desk = call.query, call.desk
    is_wanted = wanted(desk.bodies, having=query.property, text=query.text)
    scan = call.admin.messages.scan(
        query.topic,
        begin_ms=query.begin_ms,
        end_ms=query.end_ms,
        expression=_expression(query.tags, query.sql),
        broker=query.broker or None,
        queue_id=query.queue_id,
    )
    first = await anext(scan, None)  # what is wrong is said before the download begins

    async def lines() -> AsyncIterator[bytes]:
        count, one = 0, first
        while one is not None and count < query.count:
            if is_wanted(one):
                yield json_line(one, desk.bodies)
                count += 1
            one = await anext(scan, None)

    return Stream(parts=lines(), media_type=JSON_LINES, file_name=f"{query.topic}.jsonl")


async def _by_index(call: Call[MessagesQuery, None]) -> MessagesFound:
    query = call.query
    notes: list[Remark] = []
    topics = [query.topic]
    if not query.topic:
        if query.id:
            return await _by_id_anywhere(call)
        topics = await _written_last(call.site)
        snapshot = call.site.snapshot
        known = sum(snapshot.kind_of(name) == NORMAL for name in snapshot.topics)
        left = known - len(topics)
        if left > 0:
            notes.append(remark("topics_left", asked=len(topics), left=left))
    found, failures = await _in_topics(call, topics)
    found.sort(key=lambda one: one.stored_ms, reverse=True)
    if failures:
        # Never an empty answer that looks like "there is none".
        notes.append(remark("topics_failed", topics=len(failures), problem=str(failures[0])))
        if not found and len(failures) == len(topics):
            raise failures[0]
    return MessagesFound(rows=found[: query.size], scanned=len(found), cursor="", notes=notes)


async def _in_topics(
    call: Call[MessagesQuery, None], topics: list[str]
) -> tuple[list[MessageOfList], list[CometError]]:
    query, room = call.query, asyncio.Semaphore(AT_ONCE)
    is_wanted = _wanted(query, call.desk)
    found: list[MessageOfList] = []
    failures: list[CometError] = []

    async def look(topic: str) -> None:
        async with room:
            try:
                if query.id:
                    told = await _all_by_id(call.admin, topic, query.id)
                else:
                    told = await call.admin.messages.by_key(
                        topic,
                        query.key,
                        begin_ms=query.begin_ms or 0,
                        end_ms=TIME_MS_MAX if query.end_ms is None else query.end_ms,
                        count_max=KEYS_MAX,
                    )
                found.extend(row_of(one, call.desk.bodies) for one in told if is_wanted(one))
            except CometError as error:
                failures.append(error)

    await asyncio.gather(*(look(topic) for topic in topics))
    return found, failures


async def _by_id_anywhere(call: Call[MessagesQuery, None]) -> MessagesFound:
    """An offset id says by itself where the message is; a unique id is looked up as a key is."""
    topics = await _written_last(call.site)
    try:
        one = await call.admin.messages.by_id(call.query.id)
        rows = [row_of(one, call.desk.bodies)]
    except CometError:
        rows, _ = await _in_topics(call, topics)
    return MessagesFound(rows=rows, scanned=len(rows), cursor="", notes=[])


async def _written_last(site: Site) -> list[str]:
    snapshot = await site.seen()
    topics = [name for name in snapshot.topics if snapshot.kind_of(name) == NORMAL]

    def written(name: str) -> int:
        found = site.status.get(name)
        return found.value.updated_ms if found and found.value else 0

    return sorted(topics, key=written, reverse=True)[:TOPICS_ASKED_MAX]


async def _all_by_id(admin: Admin, topic: str, text: str) -> list[ReceivedMessage]:
    found = await admin.messages.all_by_id(topic, text)
    if found:
        return found
    try:
        return [await admin.messages.by_id(text, topic)]
    except MessageNotFound:
        return []


async def _one(admin: Admin, text: str, topic: str) -> ReceivedMessage:
    """By a unique id or an offset id. Raises MessageNotFound, UsageError."""
    if topic:
        try:
            found = await admin.messages.all_by_id(topic, text)
        except NoRoute:
            found = []
        if found:
            return found[-1]
    return await admin.messages.by_id(text, topic or None)


def _expression(tags: str, sql: str) -> Expression:
    if tags and sql:
        raise bad_request("expected tags or sql, got both", field="sql")
    return Sql(sql) if sql else tags or "*"


def _wanted(query: MessagesQuery, desk: Desk) -> Wanted:
    return wanted(
        desk.bodies,
        having=query.property,
        text=query.text,
        begin_ms=query.begin_ms,
        end_ms=query.end_ms,
    )


def _copy(found: ReceivedMessage, topic: str) -> Message:
    own = {key: value for key, value in found.properties.items() if key not in RESERVED}
    return Message(
        topic=topic,
        body=bytes(found.body),
        tags=found.tags,
        keys=list(found.keys),
        properties=own,
        flag=found.flag,
    )


HANDLERS: Final = {
    "messages": messages,
    "message": message,
    "body": body,
    "fate": fate,
    "trace": trace,
    "resend": resend,
    "export_messages": export_messages,
}
