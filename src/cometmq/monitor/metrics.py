"""All metrics of one server: where they come from, and how they are read for whoever wants them."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Protocol

from cometmq.monitor.family import Family
from cometmq.monitor.portions import in_portions
from cometmq.monitor.text_page import portions


class Source(Protocol):
    @property
    def families(self) -> Sequence[Family]: ...

    def prepare(self) -> Iterator[None]:
        """Compute what the families read, in steps of a millisecond at most."""
        ...


class Ready:
    """A source whose families need no preparation."""

    def __init__(self, *families: Family) -> None:
        self.families: Sequence[Family] = families

    def prepare(self) -> Iterator[None]:
        return iter(())


class Metrics:
    """
    Args:
        common: labels of every series.
        series_max: most series of one family.
    """

    def __init__(
        self, sources: Sequence[Source], *, common: Mapping[str, str], series_max: int
    ) -> None:
        self.common = common
        self.series_max = series_max
        self._sources = sources
        # One reader at a time: two would take twice the memory, and the loop twice as long.
        self._reading = asyncio.Lock()

    @property
    def families(self) -> list[Family]:
        return [family for source in self._sources for family in source.families]

    async def read(self) -> list[Family]:
        """The families, up to date."""
        async with self._reading:
            await self._prepare()
        return self.families

    async def page(self, *, is_open_metrics: bool = False, names: Container[str] = ()) -> bytes:
        """Args: names: only those families; all if there are none."""
        async with self._reading:
            await self._prepare()
            families = [one for one in self.families if not names or one.page_name in names]
            parts = portions(
                families,
                self.common,
                series_max=self.series_max,
                is_open_metrics=is_open_metrics,
            )
            return b"".join(await in_portions(parts))

    async def _prepare(self) -> None:
        for source in self._sources:
            await in_portions(source.prepare())
