"""The network between hosts as a table of links, and how a broker is told its place in it.

Two transports carry it out: ``namespaces`` gives each host a network of its own and passes packets on, ``proxies``
passes connections on and needs no rights. Hosts are named; ``clients`` is where the harness and its clients are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from tests.chaos.plan.faults import Fault

CLIENTS: Final = "clients"
NAME_SERVER: Final = "n1"

Pair = tuple[str, str]
"""Who sends, who receives."""


@dataclass(frozen=True, slots=True)
class Link:
    is_cut: bool = False
    delay_ms: float = 0.0
    loss: float = 0.0


GOOD: Final = Link()
Links = Mapping[Pair, Link]
"""Pairs that are not in it have a good link."""


def links_under(kind: Fault, host: str, amount: float, hosts: Iterable[str]) -> dict[Pair, Link]:
    """What a fault of the network makes of the links of one host."""
    others = [other for other in hosts if other != host]
    out, into = [(host, other) for other in others], [(other, host) for other in others]
    match kind:
        case Fault.CUT:
            return dict.fromkeys(out + into, Link(is_cut=True))
        case Fault.CUT_IN:
            return dict.fromkeys(into, Link(is_cut=True))
        case Fault.CUT_OUT:
            return dict.fromkeys(out, Link(is_cut=True))
        case Fault.SLOW:
            return dict.fromkeys(out + into, Link(delay_ms=amount))
        case Fault.LOSSY:
            return dict.fromkeys(out + into, Link(loss=amount))
    raise ValueError(f"{kind} is no fault of the network")


def cut_between(some: Iterable[str], others: Collection[str]) -> dict[Pair, Link]:
    """Links between two sets of hosts that carry nothing, either way."""
    pairs = [pair for one in some for other in others for pair in ((one, other), (other, one))]
    return dict.fromkeys(pairs, Link(is_cut=True))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server listens (``bind``), where others find it (``address``), and its ports. ``name_server`` is what
    this host has to call to reach the name server. ``command`` starts a program on the host."""

    bind: str
    address: str
    port: int
    ha_port: int
    name_server: str
    command: tuple[str, ...] = ()


class Network(Protocol):
    name_server: str
    """For clients."""

    async def start(self) -> None: ...

    async def add(self, host: str, group: str) -> Place:
        """A host; ``group`` is the broker group that it belongs to."""
        ...

    async def set_links(self, links: Links) -> None:
        """From now on the links are these."""
        ...

    async def stop(self) -> None: ...
