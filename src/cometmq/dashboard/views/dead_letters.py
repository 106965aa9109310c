"""Dead letters: by group, of which kinds, resend, export, delete."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from cometmq.admin.admin import Admin
from cometmq.admin.messages.dead_letters import DeadLetter as Letter
from cometmq.base.errors import CometError
from cometmq.client.errors import NoRoute
from cometmq.dashboard.bodies.common import Changed, Failure, Place, Remark, SiteQuery
from cometmq.dashboard.bodies.messages import (
    DeadLetter,
    DeadLetterGroup,
    DeadLetterGroups,
    DeadLetterKind,
    DeadLetters,
    DeadLettersQuery,
    ResendLetters,
)
from cometmq.dashboard.bodies.topics import Confirmed
from cometmq.dashboard.call import Call, Stream
from cometmq.dashboard.contract.table import JSON_LINES
from cometmq.dashboard.decoding.body_text import Bodies
from cometmq.dashboard.problems import Problem, bad_request
from cometmq.dashboard.views.parts.changes import changed
from cometmq.dashboard.views.parts.message_rows import json_line, schema_topic
from cometmq.dashboard.views.parts.remarks import remark
from cometmq.dashboard.views.parts.search import Found, newest_first
from cometmq.dashboard.watch.snapshot import DEAD_LETTER
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import DLQ_PREFIX, check_group, dlq_topic

RESENT_MAX: Final = 1000
"""At once; ask again for more."""
RESEND_SECONDS: Final = 15.0
"""Then it says how far it came: an answer that is cut off would not tell what was done."""


async def dead_letter_groups(call: Call[SiteQuery, None]) -> DeadLetterGroups:
    site = call.site
    snapshot = await site.seen()
    rows = []
    for topic in sorted(name for name in snapshot.topics if snapshot.kind_of(name) == DEAD_LETTER):
        found = site.status.get(topic)
        status = found.value if found else None
        rows.append(
            DeadLetterGroup(
                group=topic.removeprefix(DLQ_PREFIX),
                topic=topic,
                count=status.message_count if status else None,
                updated_ms=status.updated_ms if status else None,
                trend=site.trends.of(f"topic:{topic}:messages"),
            )
        )
    rows.sort(key=lambda row: (-(row.count or 0), row.group))
    return DeadLetterGroups(as_of_ms=snapshot.at_ms, incomplete=list(snapshot.gaps), rows=rows)


async def dead_letters(call: Call[DeadLettersQuery, None]) -> DeadLetters:
    group, query = call.names["group"], call.query
    found = await _find(call, group, query, query.scan_max)
    kinds: dict[tuple[str, str], DeadLetterKind] = {}
    for row in found.rows:
        kind = kinds.setdefault(
            (row.origin_topic, row.reason.text),
            DeadLetterKind(origin_topic=row.origin_topic, reason=row.reason, count=0, newest_ms=0),
        )
        kind.count += 1
        kind.newest_ms = max(kind.newest_ms, row.died_ms)
    first = (query.page - 1) * query.size
    notes = [remark("letters_left", scanned=found.scanned)] if found.cursor else []
    return DeadLetters(
        group=group,
        rows=found.rows[first : first + query.size],
        kinds=sorted(kinds.values(), key=lambda kind: -kind.count),
        total=len(found.rows),
        scanned=found.scanned,
        page=query.page,
        size=query.size,
        notes=notes,
    )


async def resend_dead_letters(call: Call[SiteQuery, ResendLetters]) -> Changed:
    group, given = call.names["group"], call.body
    check_group(group)
    if bool(given.ids) == given.all:
        raise bad_request("expected ids, or all=true", field="ids")
    ids = list(dict.fromkeys(given.ids))
    notes: list[Remark] = []
    if given.all:
        call.confirmed(given.confirm, group)
        query = DeadLettersQuery(origin=given.origin, begin_ms=given.begin_ms, end_ms=given.end_ms)
        found = await _find(call, group, query, RESENT_MAX)
        ids = [row.id for row in found.rows[:RESENT_MAX]]
        if found.cursor or len(found.rows) > RESENT_MAX:
            notes.append(remark("newest_resent", letters=len(ids)))
    answer = Changed(done=[], notes=notes)
    clock = call.desk.clock
    deadline = clock.monotonic() + RESEND_SECONDS
    for number, text in enumerate(ids):
        if clock.monotonic() > deadline:
            notes.append(remark("resend_stopped", letters=number, left=len(ids) - number))
            break
        # One after the other: bodies may be large.
        try:
            await _resend(call.admin, group, text)
            what = f"delivered to group {group} again"
            answer.done.append(Place(where=text, what=what))
        except CometError as error:
            answer.failed.append(Failure(where=text, problem=str(error)))
    return answer


async def _resend(admin: Admin, group: str, text: str) -> None:
    message = await admin.messages.by_id(text, dlq_topic(group))
    if message.topic != dlq_topic(group):
        raise bad_request(f"{text} is no dead letter of group {group}", field="ids")
    result = await admin.dead_letters.resend(group, [Letter(message=message)])
    for error in result.failed.values():
        raise error


async def export_dead_letters(call: Call[DeadLettersQuery, None]) -> Stream:
    group, query = call.names["group"], call.query
    scan = call.admin.dead_letters.scan(group, begin_ms=query.begin_ms, end_ms=query.end_ms)
    first = await anext(scan, None)  # what is wrong is said before the download begins

    async def lines() -> AsyncIterator[bytes]:
        count, letter = 0, first
        while letter is not None and count < query.scan_max:
            if not query.origin or letter.origin_topic == query.origin:
                yield json_line(letter.message, call.desk.bodies)
                count += 1
            letter = await anext(scan, None)

    return Stream(parts=lines(), media_type=JSON_LINES, file_name=f"dead-letters-{group}.jsonl")


async def delete_dead_letters(call: Call[SiteQuery, Confirmed]) -> Changed:
    group = call.names["group"]
    check_group(group)
    call.confirmed(call.body.confirm, group)
    try:
        done = await call.admin.topics.delete(dlq_topic(group), call.body.cluster or None)
    except NoRoute:
        raise Problem(404, "no_dead_letters", f"group {group!r} has no dead letters") from None
    return changed(done, f"deleted the dead letters of {group}")


async def _find(
    call: Call[SiteQuery | DeadLettersQuery, object],
    group: str,
    query: DeadLettersQuery,
    scan_max: int,
) -> Found[DeadLetter]:
    check_group(group)
    try:
        ranges = await call.admin.messages.ranges(
            dlq_topic(group), begin_ms=query.begin_ms, end_ms=query.end_ms
        )
    except NoRoute:
        return Found([], 0, "")
    return await newest_first(
        call.admin,
        ranges,
        expression="*",
        is_wanted=lambda one: not query.origin or Letter(message=one).origin_topic == query.origin,
        keep=lambda one: _row(one, call.desk.bodies),
        size=scan_max,
        scan_max=scan_max,
        cursor="",
    )


def reason_of(message: ReceivedMessage) -> Remark:
    """Brokers do not keep what a listener raised; how often it was tried is what is known."""
    count = message.reconsume_times
    return remark("retries_used_up", attempts=count) if count else remark("not_retried")


def _row(message: ReceivedMessage, bodies: Bodies) -> DeadLetter:
    letter = Letter(message=message)
    return DeadLetter(
        id=message.offset_id,
        message_id=letter.message_id,
        origin_topic=letter.origin_topic,
        origin_id=letter.origin_id,
        reason=reason_of(message),
        tags=message.tags or "",
        keys=list(message.keys),
        died_ms=message.store_timestamp,
        born_ms=message.born_timestamp,
        retries=message.reconsume_times,
        body_bytes=len(message.body),
        preview=bodies.preview(bytes(message.body), schema_topic(message)),
    )


HANDLERS: Final = {
    "dead_letter_groups": dead_letter_groups,
    "dead_letters": dead_letters,
    "resend_dead_letters": resend_dead_letters,
    "export_dead_letters": export_dead_letters,
    "delete_dead_letters": delete_dead_letters,
}
