"""Events for open tabs: one stream each, with a bounded queue. Who is too slow loses the oldest, and nobody waits."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from cometmq.dashboard.problems import Problem

QUEUE_MAX: Final = 200
COMMENT_SECONDS: Final = 15.0
"""A line that means nothing: proxies and browsers drop streams that are silent for longer."""


class Stream:
    """Events of one tab."""

    def __init__(self, site: str) -> None:
        self.site = site
        self._parts: deque[bytes] = deque(maxlen=QUEUE_MAX)
        self._has_some = asyncio.Event()
        self.is_closed = False

    def put(self, part: bytes) -> None:
        self._parts.append(part)
        self._has_some.set()

    def close(self) -> None:
        self.is_closed = True
        self._has_some.set()

    async def parts(self) -> AsyncIterator[bytes]:
        yield b": welcome\nretry: 3000\n\n"
        while True:
            while self._parts:
                yield self._parts.popleft()
            if self.is_closed:
                return
            self._has_some.clear()
            try:
                async with asyncio.timeout(COMMENT_SECONDS):
                    await self._has_some.wait()
            except TimeoutError:
                yield b": still here\n\n"


class Hub:
    """Owned by the event loop."""

    def __init__(self, streams_max: int) -> None:
        self._streams_max = streams_max
        self._streams: set[Stream] = set()
        self._number = 0

    def __len__(self) -> int:
        return len(self._streams)

    def open(self, site: str) -> Stream:
        """Raises Problem: too many are open."""
        if len(self._streams) >= self._streams_max:
            raise Problem(
                429,
                "too_many_streams",
                f"{self._streams_max} tabs follow events already",
                hint="close some, or raise streamsMax",
                retry_after=15,
            )
        stream = Stream(site)
        self._streams.add(stream)
        return stream

    def close(self, stream: Stream) -> None:
        stream.close()
        self._streams.discard(stream)

    def close_all(self) -> None:
        for stream in list(self._streams):
            self.close(stream)

    def tell(self, site: str, name: str, value: Any) -> None:
        """An event for all tabs that show a site."""
        self._number += 1
        part = event(name, value, self._number)
        for stream in self._streams:
            if stream.site == site:
                stream.put(part)


def event(name: str, value: Any, number: int | None = None) -> bytes:
    """One event in the form of the HTML standard."""
    head = f"event: {name}\n" if number is None else f"id: {number}\nevent: {name}\n"
    return head.encode() + b"data: " + msgspec.json.encode(value) + b"\n\n"
