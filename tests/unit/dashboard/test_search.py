"""A search keeps rows, not messages."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from typing import Any, Final

from cometmq.client.core.queue_answers import Bounds
from cometmq.dashboard.views.parts.search import newest_first
from cometmq.model.message_queue import MessageQueue

BODY_BYTES: Final = 4 * 1024 * 1024
MESSAGES: Final = 200


class LargeMessage:
    def __init__(self, offset: int) -> None:
        self.queue_offset = self.store_timestamp = offset
        self.body = bytes(BODY_BYTES)


class LargeMessages:
    """In the place of an Admin: each message is 4 MB, made when it is read."""

    def __init__(self) -> None:
        self.messages = self

    async def read(
        self, queue: MessageQueue, bounds: Bounds, expression: object
    ) -> AsyncIterator[LargeMessage]:
        for offset in range(bounds.first, bounds.end):
            yield LargeMessage(offset)


async def test_messages_of_4_mb_do_not_pile_up() -> None:
    admin: Any = LargeMessages()
    tracemalloc.start()
    found = await newest_first(
        admin,
        {MessageQueue("a", 0, "Pictures"): Bounds(0, MESSAGES)},
        expression="*",
        is_wanted=lambda one: True,
        keep=lambda one: len(one.body),
        size=500,
        scan_max=1000,
        cursor="",
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.rows == [BODY_BYTES] * MESSAGES
    assert found.cursor == ""
    assert peak < 5 * BODY_BYTES
