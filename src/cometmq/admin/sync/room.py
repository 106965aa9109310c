"""What all subjects of the blocking ``Admin`` share: how a call gets to the loop, and its result back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeVar

A = TypeVar("A")
T = TypeVar("T")
Params = ParamSpec("Params")

ITEMS_AT_ONCE: Final = 64
"""How many items of an iterator are fetched in one go."""


class Runner(Protocol):
    """The part of ``BlockingClient`` that is used here."""

    def _run(
        self,
        function: Callable[Params, Coroutine[Any, Any, T]],
        /,
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> T: ...


class Room(Generic[A]):
    """Args: twin: the asyncio object of the same subject."""

    def __init__(self, client: Runner, twin: A) -> None:
        self._client = client
        self._aio = twin

    def _run(
        self,
        function: Callable[Params, Coroutine[Any, Any, T]],
        /,
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> T:
        return self._client._run(function, *args, **kwargs)

    def _each(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Item by item, fetched when they are wanted. One that is left early is closed at once."""

        async def some() -> list[T]:
            found: list[T] = []
            async for item in items:
                found.append(item)
                if len(found) == ITEMS_AT_ONCE:
                    break
            return found

        async def end() -> None:
            # Iterators need not have it; those that are functions with a yield do.
            close = getattr(items, "aclose", None)
            if close is not None:
                await close()

        try:
            while page := self._run(some):
                yield from page
        finally:
            self._run(end)
