"""The controllers of a group by name, and which of them acts by itself: the leader."""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.model.address import join_address


@dataclass(frozen=True, slots=True)
class Peer:
    """A controller by name, and where brokers find it."""

    name: str
    host: str
    port: int

    @property
    def address(self) -> str:
        return join_address(self.host, self.port)


@dataclass(frozen=True, slots=True)
class Roster:
    """All controllers, as far as this one knows; no leader if it cannot tell."""

    own: Peer
    leader: Peer | None
    peers: tuple[Peer, ...]

    @property
    def is_leader(self) -> bool:
        return self.leader == self.own


def alone(own: Peer) -> Roster:
    return Roster(own, own, (own,))
