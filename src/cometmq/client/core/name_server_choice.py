"""Which name server to use: one until it fails, then the next. No I/O.

The list comes from the first of these that is set: the client's setting, the environment, the address service.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from cometmq.base.errors import UsageError
from cometmq.model.address import split_address, split_addresses

ENVIRONMENT_VARIABLE: Final = "NAMESRV_ADDR"
SERVICE_PORT: Final = 8080

Shuffle = Callable[[list[str]], None]


def static_name_servers(setting: str, environment: str) -> list[str]:
    """The configured addresses; empty if they come from the address service.

    Raises:
        UsageError: a part of the list is not an address.
    """
    addresses = split_addresses(setting) or split_addresses(environment)
    for address in addresses:
        split_address(address)
    return addresses


def service_path(group: str, unit_name: str) -> str:
    """The path of the address service; a unit has its own list."""
    path = f"/rocketmq/{group}"
    return f"{path}-{unit_name}?nofix=1" if unit_name else path


def parse_service_answer(text: str) -> list[str]:
    """The addresses in a response of the address service.

    Raises:
        UsageError: it contains no address, or something else.
    """
    addresses = split_addresses(text)
    for address in addresses:
        split_address(address)
    if not addresses:
        raise UsageError("expected addresses like 10.0.0.1:9876;10.0.0.2:9876, got an empty answer")
    return addresses


class NameServerChoice:
    """The list in the order of use. Clients shuffle it, so that they spread over the name servers."""

    def __init__(self, addresses: Sequence[str], shuffle: Shuffle) -> None:
        self._shuffle = shuffle
        self._addresses: list[str] = []
        self.replace(addresses)

    @property
    def addresses(self) -> list[str]:
        """All addresses, the current one first."""
        return list(self._addresses)

    def replace(self, addresses: Sequence[str]) -> bool:
        """Returns whether the list has changed. The same addresses in another order are not a change."""
        unique = list(dict.fromkeys(addresses))
        if set(unique) == set(self._addresses):
            return False
        self._shuffle(unique)
        self._addresses = unique
        return True

    def failed(self, address: str) -> None:
        """Switch to the next one. If several calls fail at the same address, only the first switches."""
        if self._addresses and self._addresses[0] == address:
            self._addresses.append(self._addresses.pop(0))
