"""The same question to many servers at once, and what came of it: answers and failures, by address.

A server that does not answer costs its own timeout and delays nobody else: servers are asked side by side, each through
a window of its own, and what still waits to be asked of one that is silent fails with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Generic, Self, TypeVar

from cometmq.admin.errors import PartialFailure
from cometmq.base.errors import CometError

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)

_has_place: Final = ContextVar("has_place", default=False)

WINDOW: Final = 32
"""Requests to one server that are sent ahead of their replies."""


@dataclass(frozen=True, slots=True)
class ByServer(Generic[T]):
    """What each server answered, and which ones failed. Keys are addresses."""

    done: Mapping[str, T]
    failed: Mapping[str, CometError] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether every server did what was asked."""
        return not self.failed

    def values(self) -> list[T]:
        """The answers, in the order of the servers."""
        return list(self.done.values())

    def raise_failed(self, what: str = "the request") -> Self:
        """Itself if no server failed. Raises PartialFailure, which says who did it and who did not."""
        if self.failed:
            raise PartialFailure(what, list(self.done), self.failed)
        return self


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """Rows from several servers. They are incomplete if any server ``failed``; keys are addresses."""

    rows: list[T]
    failed: Mapping[str, CometError] = field(default_factory=dict)

    def __iter__(self) -> Iterator[T]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_complete(self) -> bool:
        return not self.failed

    def raise_failed(self, what: str = "the listing") -> Self:
        """Itself if no server failed. Raises PartialFailure."""
        if self.failed:
            raise PartialFailure(what, [], self.failed)
        return self


class FanOut:
    """Args: servers_max: how many servers are asked at once."""

    def __init__(self, servers_max: int) -> None:
        self._room = asyncio.Semaphore(servers_max)

    async def each(
        self, addresses: Iterable[str], ask: Callable[[str], Awaitable[T]]
    ) -> ByServer[T]:
        """One call per server. Errors other than CometError are bugs, and are raised."""
        order = list(dict.fromkeys(addresses))
        answers: dict[str, T] = {}
        failures: dict[str, CometError] = {}

        async def one(address: str) -> None:
            async with self._place():
                try:
                    answers[address] = await ask(address)
                except CometError as error:
                    failures[address] = error

        await _all_of(one(address) for address in order)
        return ByServer(
            {address: answers[address] for address in order if address in answers},
            {address: failures[address] for address in order if address in failures},
        )

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """One of the places. Who asks further servers for an answer has one already: two would wait for each other."""
        if _has_place.get():
            yield
            return
        async with self._room:
            token = _has_place.set(True)
            try:
                yield
            finally:
                _has_place.reset(token)

    async def many(
        self,
        wanted: Mapping[str, Iterable[Key]],
        ask: Callable[[str, Key], Awaitable[T]],
    ) -> ByServer[dict[Key, T]]:
        """Many calls per server, some at a time. The first error of a server ends what is asked of it.

        What it answered until then counts for nothing: a half-told server is one that failed.
        """

        async def all_of(address: str) -> dict[Key, T]:
            found: dict[Key, T] = {}
            keys = iter(list(wanted[address]))

            async def worker() -> None:
                for key in keys:
                    found[key] = await ask(address, key)

            await _all_of(worker() for _ in range(WINDOW))
            return found

        return await self.each(wanted, all_of)


async def _all_of(work: Iterable[Awaitable[None]]) -> None:
    """All of it, side by side; the first error ends the rest and is raised as it is."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
