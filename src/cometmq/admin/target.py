"""Which brokers something is asked of, or done at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cometmq.admin.errors import NoSuchName, no_such
from cometmq.base.errors import UsageError
from cometmq.model.address import split_address
from cometmq.model.ids import MASTER_ID
from cometmq.protocol.bodies.route import ClusterInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A cluster, a broker by its name, or one server by its address; none of them means all brokers.

    What lists or tells something takes all brokers of all clusters then. What changes something takes all of the only
    cluster, and refuses if there are several.

    Args:
        with_slaves: not only the masters.
    """

    cluster: str | None = None
    broker: str | None = None
    address: str | None = None
    with_slaves: bool = False

    def __post_init__(self) -> None:
        given = [name for name in ("cluster", "broker", "address") if getattr(self, name)]
        if len(given) > 1:
            raise UsageError(
                f"expected one of cluster, broker and address, got {' and '.join(given)}"
            )
        if self.address:
            split_address(self.address)


ALL_BROKERS = Target()
EVERY_SERVER = Target(with_slaves=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A broker as a name server tells of it. Id 0 is the master's."""

    cluster: str
    broker_name: str
    broker_id: int
    address: str

    @property
    def is_master(self) -> bool:
        return self.broker_id == MASTER_ID

    @property
    def title(self) -> str:
        """``broker-a:0``"""
        return f"{self.broker_name}:{self.broker_id}"


def places(info: ClusterInfo) -> list[Place]:
    """All brokers, by cluster, name and id."""
    found = [
        Place(cluster=data.cluster, broker_name=name, broker_id=broker_id, address=address)
        for name, data in info.broker_addr_table.items()
        for broker_id, address in data.broker_addrs.items()
    ]
    return sorted(found, key=lambda one: (one.cluster, one.broker_name, one.broker_id))


def chosen(target: Target, info: ClusterInfo, *, is_change: bool) -> list[Place]:
    """The brokers that a target means: the masters, or the first slave of a broker that has no master now.

    Raises:
        NoSuchName: the cluster or broker is not there.
        UsageError: a change that may be meant for one of several clusters.
    """
    known = places(info)
    clusters = sorted({place.cluster for place in known})
    if target.cluster:
        found = [place for place in known if place.cluster == target.cluster]
        if not found:
            raise no_such("cluster", target.cluster, clusters)
    elif target.broker:
        found = [place for place in known if place.broker_name == target.broker]
        if not found:
            raise no_such("broker", target.broker, [place.broker_name for place in leaders(known)])
    else:
        found = known
        if is_change and len(clusters) > 1:
            raise UsageError(
                f"there are several clusters ({', '.join(clusters)}): say which one, or which broker"
            )
        if not found:
            raise NoSuchName("no broker is registered at the name server")
    return found if target.with_slaves else leaders(found)


def leaders(found: Iterable[Place]) -> list[Place]:
    """Of each broker name the one with the lowest id: its master, or who stands in for it."""
    first: dict[tuple[str, str], Place] = {}
    for place in found:
        known = first.setdefault((place.cluster, place.broker_name), place)
        if place.broker_id < known.broker_id:
            first[place.cluster, place.broker_name] = place
    return list(first.values())
