"""How much of what is there a trigger takes. No I/O.

Limits hold: the sum over all queues never exceeds them, but for one message that alone is above the limit of bytes.
Queues are drained at the same relative pace, so that none runs ahead in time; none is left out while the limit has a
row for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Key = TypeVar("Key")


def share(wanted: Mapping[Key, int], limit: int, *, turn: int = 0) -> dict[Key, int]:
    """Parts of ``limit`` in proportion to what is wanted: never more than that, and in sum no more than ``limit``.

    Args:
        turn: who comes first when there is not one for each; give another number each time.
    """
    keys = [key for key, amount in wanted.items() if amount > 0]
    total = sum(wanted[key] for key in keys)
    if total <= limit:
        return {key: max(amount, 0) for key, amount in wanted.items()}
    shares = dict.fromkeys(wanted, 0)
    if limit < len(keys):
        for index in range(limit):
            shares[keys[(turn + index) % len(keys)]] = 1
        return shares
    # One for each, then the rest by proportion; what rounding leaves over goes round.
    spare, rest = limit - len(keys), total - len(keys)
    for key in keys:
        shares[key] = 1 + (wanted[key] - 1) * spare // rest
    left = limit - sum(shares.values())
    for index in range(len(keys)):
        key = keys[(turn + index) % len(keys)]
        if left and shares[key] < wanted[key]:
            shares[key] += 1
            left -= 1
    return shares


class Patience:
    """Waits for a number of rows, but no longer than a time from when the first was seen."""

    def __init__(self, min_rows: int | None, max_delay_seconds: float) -> None:
        self._min_rows = min_rows or 0
        self._max_delay = max_delay_seconds
        self._since: float | None = None

    def is_over(self, rows: int, now: float) -> bool:
        """Whether to take what is there."""
        if not rows:
            self._since = None
            return True
        if self._since is None:
            self._since = now
        if rows >= self._min_rows or now - self._since >= self._max_delay:
            self._since = None
            return True
        return False
