"""Checks of what must be alike: versions, names, settings of replicas, and their logs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from cometmq.admin import Place
from cometmq.cli.doctor.facts import ClusterFacts, Kind, ServerFacts
from cometmq.cli.doctor.finding import Finding, Level

MASTER_ID: Final = 0
BEHIND_BYTES_MAX: Final = 1 << 20

_OWN: Final = frozenset(
    {
        "brokerClusterName",
        "brokerName",
        "brokerId",
        "brokerRole",
        "bindAddress",
        "haMasterAddress",
        "rocketmqHome",
        "tls.config.file",
        "startAcceptSendRequestTimeStamp",
    }
)
_OWN_ENDS: Final = ("Path", "Dir", "Port", "IP1", "IP2", "File")
_OWN_BEGINNINGS: Final = ("storePath",)
_SHOWN_MAX: Final = 8


def unasked(facts: ClusterFacts) -> Iterator[Finding]:
    """What could not be looked at must not pass for being right."""
    for server in facts.servers:
        if server.refusal and not server.silence:
            advice = "a super user's account" if facts.client.has_account else "an account and TLS"
            yield Finding(
                level=Level.UNKNOWN,
                name="not-answered",
                subject=server.title,
                text=f"did not tell its settings: {server.refusal}",
                remedy=f"give {advice} with -c, such as the tools.conf of `cometmq init`",
            )


def versions(facts: ClusterFacts) -> Iterator[Finding]:
    found: dict[str, list[str]] = defaultdict(list)
    for server in facts.servers:
        if version := server.figures.get("brokerVersionDesc"):
            found[version].append(server.address)
    if len(found) > 1:
        told = "; ".join(
            f"{version}: {', '.join(where)}" for version, where in sorted(found.items())
        )
        yield Finding(
            level=Level.PROBLEM,
            name="versions-differ",
            subject="brokers",
            text=f"have different versions ({told})",
            remedy="bring all of them to one version",
        )


def names(facts: ClusterFacts) -> Iterator[Finding]:
    """What a name server tells of a broker, and what the broker says itself."""
    for place, server in _brokers(facts):
        settings = server.settings or {}
        told = {
            "brokerClusterName": place.cluster,
            "brokerName": place.broker_name,
            "brokerId": str(place.broker_id),
        }
        wrong = [
            f"{key} {settings[key]} instead of {value}"
            for key, value in told.items()
            # A controller gives ids, and an acting master is told as one.
            if settings.get(key, value) != value
            and not (key == "brokerId" and _has_roles(settings))
        ]
        if wrong:
            yield Finding(
                level=Level.PROBLEM,
                name="names-differ",
                subject=f"broker {place.title}",
                text=f"at {place.address} is one with {', '.join(wrong)}",
                remedy="another broker answers at this address: set brokerIP1 and listenPort of both right",
            )


def clusters(facts: ClusterFacts) -> Iterator[Finding]:
    found: dict[str, set[str]] = defaultdict(set)
    for place in facts.places:
        found[place.broker_name].add(place.cluster)
    for broker_name, clusters in sorted(found.items()):
        if len(clusters) > 1:
            yield Finding(
                level=Level.PROBLEM,
                name="clusters-differ",
                subject=f"broker {broker_name}",
                text=f"belongs to the clusters {' and '.join(sorted(clusters))}",
                remedy="set brokerClusterName of its master and slaves to the same",
            )


def settings_of_replicas(facts: ClusterFacts) -> Iterator[Finding]:
    for broker_name, replicas in _groups(facts).items():
        known = {place.broker_id: one.settings for place, one in replicas if one.settings}
        if len(known) < 2:
            continue
        keys = sorted(set().union(*known.values()))
        differing = [
            key
            for key in keys
            if not _is_own(key) and len({settings.get(key) for settings in known.values()}) > 1
        ]
        if differing:
            shown = differing[:_SHOWN_MAX]
            more = f" and {len(differing) - len(shown)} more" if len(differing) > len(shown) else ""
            values = "; ".join(
                f"{key}: "
                + ", ".join(
                    f"{settings.get(key)} on {number}" for number, settings in known.items()
                )
                for key in shown
            )
            yield Finding(
                level=Level.PROBLEM,
                name="settings-differ",
                subject=f"broker {broker_name}",
                text=f"its replicas have different settings ({values}{more}): after a fail-over others apply",
                remedy="set them to the same in the broker.conf of each replica",
            )


def slaves_behind(facts: ClusterFacts) -> Iterator[Finding]:
    for replicas in _groups(facts).values():
        ends = {place: _log_end(server) for place, server in replicas}
        master = next((end for place, end in ends.items() if place.broker_id == MASTER_ID), None)
        for place, end in ends.items():
            if master is None or end is None or master - end <= BEHIND_BYTES_MAX:
                continue
            yield Finding(
                level=Level.PROBLEM,
                name="slave-behind",
                subject=f"broker {place.title}",
                text=f"is {master - end:,} bytes behind its master",
                remedy="look at its log: it may not reach its master, or its disk may be too slow",
            )


def _brokers(facts: ClusterFacts) -> Iterator[tuple[Place, ServerFacts]]:
    for place in facts.places:
        server = facts.server(place.address)
        if server is not None and server.kind is Kind.BROKER:
            yield place, server


def _groups(facts: ClusterFacts) -> Mapping[str, list[tuple[Place, ServerFacts]]]:
    groups: dict[str, list[tuple[Place, ServerFacts]]] = defaultdict(list)
    for place, server in _brokers(facts):
        groups[place.broker_name].append((place, server))
    return groups


def _is_own(key: str) -> bool:
    """Whether a setting is about one machine, or one replica."""
    return key in _OWN or key.endswith(_OWN_ENDS) or key.startswith(_OWN_BEGINNINGS)


def _has_roles(settings: Mapping[str, str]) -> bool:
    return "true" in (
        settings.get("enableControllerMode"),
        settings.get("enableSlaveActingMaster"),
    )


def _log_end(server: ServerFacts) -> int | None:
    text = server.figures.get("commitLogMaxOffset", "")
    return int(text) if text.isdecimal() else None
