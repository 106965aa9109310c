"""Clusters: which brokers there are, and how they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cometmq.admin.calls import Calls
from cometmq.admin.fan_out import Listing
from cometmq.admin.servers.figures import BrokerFigures
from cometmq.admin.target import EVERY_SERVER, Place, Target
from cometmq.protocol.bodies.kv import KVTable
from cometmq.protocol.bodies.route import ClusterInfo
from cometmq.protocol.codes import RequestCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """``brokers`` has the addresses by id, by broker name; id 0 is the master's."""

    name: str
    brokers: Mapping[str, Mapping[int, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """A broker and its figures; None if it did not tell them."""

    place: Place
    figures: BrokerFigures | None


class Clusters:
    """``admin.clusters``"""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def all(self) -> list[Cluster]:
        """All clusters that a name server knows, by name.

        Raises:
            NoNameServer: none answers.
        """
        info = await self.info()
        names = {data.cluster for data in info.broker_addr_table.values()}
        return [
            Cluster(
                name=name,
                brokers={
                    broker: dict(sorted(data.broker_addrs.items()))
                    for broker, data in sorted(info.broker_addr_table.items())
                    if data.cluster == name
                },
            )
            for name in sorted(names | set(info.cluster_addr_table))
        ]

    async def info(self) -> ClusterInfo:
        """The same as the name server tells it."""
        return await self._calls.cluster_info()

    async def brokers(self, target: Target = EVERY_SERVER) -> Listing[BrokerRow]:
        """Brokers and their figures. One that does not answer has a row without figures, and is in ``failed``."""
        places = await self._calls.places(target)
        answers = await self._calls.fan_out.each([place.address for place in places], self._figures)
        rows = [BrokerRow(place=place, figures=answers.done.get(place.address)) for place in places]
        return Listing(rows, answers.failed)

    async def _figures(self, address: str) -> BrokerFigures:
        table = await self._calls.table(address, RequestCode.GET_BROKER_RUNTIME_INFO, KVTable)
        return BrokerFigures(table.table)
