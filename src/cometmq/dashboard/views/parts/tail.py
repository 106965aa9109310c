"""The live tail of a topic: its new messages as events of a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from cometmq.admin.admin import Admin
from cometmq.base.errors import CometError
from cometmq.client.core.consume.expression import Expression, subscription_to
from cometmq.client.core.queue_answers import Bounds
from cometmq.dashboard.decoding.body_text import Bodies
from cometmq.dashboard.views.parts.message_rows import row_of
from cometmq.dashboard.views.parts.search import Wanted
from cometmq.dashboard.watch.hub import Stream, event
from cometmq.model.message_queue import MessageQueue
from cometmq.model.subscription import Sql

STEP_SECONDS: Final = 1.0
PER_STEP: Final = 100
"""Messages that are shown of each step; of more, the newest, and how many were left out."""


async def follow(
    admin: Admin,
    bodies: Bodies,
    stream: Stream,
    *,
    topic: str,
    expression: str,
    expression_type: str,
    is_wanted: Wanted,
) -> Coroutine[Any, Any, None]:
    """Find the end of the topic, and return what follows it from there. Raises what a wrong topic or filter does."""
    chosen: Expression = Sql(expression) if expression_type == "SQL92" else expression or "*"
    subscription_to(topic, chosen)
    ends = await _ends(admin, topic)
    return _follow(admin, bodies, stream, topic, chosen, is_wanted, ends)


async def _follow(
    admin: Admin,
    bodies: Bodies,
    stream: Stream,
    topic: str,
    expression: Expression,
    is_wanted: Wanted,
    ends: dict[MessageQueue, int],
) -> None:
    while not stream.is_closed:
        await asyncio.sleep(STEP_SECONDS)
        try:
            now = await _ends(admin, topic)
            skipped = 0
            for queue, end in now.items():
                begin = ends.get(queue, 0)
                skipped += max(end - begin - PER_STEP, 0)
                bounds = Bounds(max(begin, end - PER_STEP), end)
                async for message in admin.messages.read(queue, bounds, expression):
                    if is_wanted(message):
                        stream.put(event("message", row_of(message, bodies)))
            ends.update(now)
        except CometError as error:
            stream.put(event("tail_problem", {"problem": str(error)[:300]}))
            continue
        if skipped:
            stream.put(event("tail_skipped", {"count": skipped}))


async def _ends(admin: Admin, topic: str) -> dict[MessageQueue, int]:
    """One request for each broker."""
    status = await admin.topics.status(topic)
    return {row.queue: row.max_offset for row in status.queues}
