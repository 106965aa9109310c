"""Checks of what clients are told: whether brokers are where the name servers say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from cometmq.cli.doctor.facts import ClusterFacts, Kind, host_of
from cometmq.cli.doctor.finding import Finding, Level
from cometmq.model.address import is_loopback


def unreachable(facts: ClusterFacts) -> Iterator[Finding]:
    for server in facts.servers:
        if not server.silence:
            continue
        where = {
            Kind.NAME_SERVER: "start it, or correct the address",
            Kind.BROKER: "start it, open the port, or set brokerIP1 of its broker.conf to the address that clients "
            "reach",
            Kind.CONTROLLER: "start it, or correct controllerAddr of the brokers",
        }
        yield Finding(
            level=Level.PROBLEM,
            name="unreachable",
            subject=server.title,
            text=server.silence,
            remedy=where[server.kind],
        )


def loopback_told(facts: ClusterFacts) -> Iterator[Finding]:
    for name_server, told in facts.told.items():
        if is_loopback(host_of(name_server)):
            continue
        for place in told:
            host = host_of(place.address)
            if is_loopback(host) or host in ("0.0.0.0", "::"):
                yield Finding(
                    level=Level.PROBLEM,
                    name="loopback-told",
                    subject=f"broker {place.title}",
                    text=f"name server {name_server} tells clients {place.address}, which leads those on other hosts "
                    "to themselves",
                    remedy="set brokerIP1 of its broker.conf to the address that clients reach",
                )


def no_brokers(facts: ClusterFacts) -> Iterator[Finding]:
    for name_server, told in facts.told.items():
        if not told:
            yield Finding(
                level=Level.PROBLEM,
                name="no-brokers",
                subject=f"name server {name_server}",
                text="knows no broker",
                remedy="start brokers with this address in namesrvAddr; their log says why they cannot register",
            )


def name_servers_differ(facts: ClusterFacts) -> Iterator[Finding]:
    """Each broker registers at all name servers: one that is missing somewhere does not reach that name server."""
    for place in facts.places:
        missing = [name for name, told in facts.told.items() if place not in told]
        if missing:
            yield Finding(
                level=Level.PROBLEM,
                name="name-servers-differ",
                subject=f"broker {place.title}",
                text=f"{place.address} is not known to name server {', '.join(missing)}",
                remedy="give the broker all name servers in namesrvAddr, and let it reach them",
            )


def claimed_twice(facts: ClusterFacts) -> Iterator[Finding]:
    """Two brokers with one name and id, or one address under two names."""
    addresses: dict[str, set[str]] = defaultdict(set)
    titles: dict[str, set[str]] = defaultdict(set)
    for place in facts.places:
        addresses[place.title].add(place.address)
        titles[place.address].add(place.title)
    for title, found in sorted(addresses.items()):
        if len(found) > 1:
            yield Finding(
                level=Level.PROBLEM,
                name="duplicate-broker",
                subject=f"broker {title}",
                text=f"is at {' and at '.join(sorted(found))}",
                remedy="give each broker a brokerName, or a brokerId within its group, of its own",
            )
    for address, names in sorted(titles.items()):
        if len(names) > 1:
            yield Finding(
                level=Level.PROBLEM,
                name="duplicate-address",
                subject=f"broker {address}",
                text=f"is told as {' and as '.join(sorted(names))}",
                remedy="set brokerIP1 and listenPort of each broker to an address of its own",
            )
