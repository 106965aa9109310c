"""Pulls of old messages: what is not in memory is loaded beside the event loop, before the pull is answered.

The pull itself is handled in the loop as always, a little later: this decides when, not what is answered.
"""

from __future__ import annotations

from asyncio import wrap_future
from collections.abc import Awaitable
from concurrent.futures import Future
from typing import Protocol, TypeVar

from cometmq.store.read.cold import NotInMemory
from cometmq.store.read.loading import Loader

T_co = TypeVar("T_co", covariant=True)


class Answer(Protocol[T_co]):
    def __call__(self, may_wait: bool) -> T_co:
        """What a pull is answered with. Raises NotInMemory if it would have to wait for the disk, and may not."""
        ...


def answered_from_memory(
    loader: Loader, cold: NotInMemory, answer: Answer[T_co]
) -> T_co | Awaitable[T_co]:
    """The answer to a pull that was refused as ``cold``: when that is loaded, or now if too many others wait."""
    future = loader.load(cold.missing)
    return answer(True) if future is None else _answered(loader, future, answer)


async def _answered(loader: Loader, entries: Future[None], answer: Answer[T_co]) -> T_co:
    await wrap_future(entries)
    try:
        return answer(False)
    except NotInMemory as cold:
        # The entries of the queue are there now, and say where the records are.
        records = loader.load(cold.missing)
    if records is not None:
        await wrap_future(records)
    # Even if something has left the memory again meanwhile: a pull is not put off for ever.
    return answer(True)
