"""In which order the addresses of a broker are asked: the master first, a replica of it when the master is silent.

No I/O; times are seconds of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from cometmq.model.ids import MASTER_ID

SHUN_SECONDS: Final = 10.0
"""How long an address that did not answer is asked only when there is no other."""


class Place(NamedTuple):
    """An address of a broker."""

    address: str
    is_master: bool


def places_of(addresses: Mapping[int, str]) -> tuple[Place, ...]:
    """The addresses of one broker by id, as a route has them, the master's first."""
    return tuple(
        Place(address, broker_id == MASTER_ID) for broker_id, address in sorted(addresses.items())
    )


class BrokerOrder:
    """Remembers who did not answer.

    Args:
        shun_seconds: how long, unless it answers again before that.
    """

    def __init__(self, shun_seconds: float = SHUN_SECONDS) -> None:
        self._shun_seconds = shun_seconds
        self._shunned_until: dict[str, float] = {}

    def sort(self, places: tuple[Place, ...], now: float) -> list[Place]:
        """Who is to be asked, one after the other."""
        return sorted(
            places,
            key=lambda place: (
                self.is_shunned(place.address, now),
                not place.is_master,
            ),
        )

    def is_shunned(self, address: str, now: float) -> bool:
        return self._shunned_until.get(address, 0.0) > now

    def failed(self, address: str, now: float) -> None:
        # Those whose time is over are as good as forgotten, so the table does not grow with a cluster's history.
        self._shunned_until = {
            known: until for known, until in self._shunned_until.items() if until > now
        }
        self._shunned_until[address] = now + self._shun_seconds

    def answered(self, address: str) -> None:
        self._shunned_until.pop(address, None)
