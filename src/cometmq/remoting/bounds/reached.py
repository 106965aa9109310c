"""How often each bound was reached. The broker shows it among its figures, all servers log it from time to time."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

logger = logging.getLogger("cometmq.remoting")

TELL_SECONDS: Final = 60.0

MALFORMED: Final = "malformed"
"""Counts what breaks the protocol: frames, headers and bodies that cannot be read, or exceed a fixed bound."""


class Reached:
    """Counts by the key of the bound's setting. Only code names bounds, so there are few. Owned by the event loop."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._told_at = float("-inf")

    def count(self, bound: str) -> None:
        self._counts[bound] = self._counts.get(bound, 0) + 1

    @property
    def counts(self) -> Mapping[str, int]:
        """Since the start, by bound; none that was never reached."""
        return self._counts

    def tell(self, now: float) -> None:
        """Log what was reached since it was last told, at most once a minute."""
        if self._counts == self._told or now - self._told_at < TELL_SECONDS:
            return
        new = {
            bound: count - self._told.get(bound, 0) for bound, count in sorted(self._counts.items())
        }
        logger.warning(
            "bounds reached %s",
            " ".join(f"{bound}={count}" for bound, count in new.items() if count),
        )
        self._told = dict(self._counts)
        self._told_at = now

    def __repr__(self) -> str:
        return f"<Reached {self._counts}>"
