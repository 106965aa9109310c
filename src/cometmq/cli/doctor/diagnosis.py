"""All checks, in the order in which a reader wants to know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from cometmq.cli.doctor import matches, open_doors, places
from cometmq.cli.doctor.facts import ClusterFacts
from cometmq.cli.doctor.finding import Finding, Level
from cometmq.cli.doctor.host import host_checks
from cometmq.cli.doctor.host.host_facts import HostFacts

CHECKS: Final[tuple[Callable[[ClusterFacts], Iterator[Finding]], ...]] = (
    places.unreachable,
    places.no_brokers,
    open_doors.anonymous_access,
    open_doors.plain_text,
    open_doors.replication,
    open_doors.certificates,
    open_doors.own_client,
    places.loopback_told,
    places.claimed_twice,
    places.name_servers_differ,
    matches.names,
    matches.clusters,
    matches.versions,
    matches.settings_of_replicas,
    matches.slaves_behind,
    matches.unasked,
)

_LEVELS: Final = tuple(Level)


def diagnose(facts: ClusterFacts) -> list[Finding]:
    """Problems first."""
    return _problems_first(finding for check in CHECKS for finding in check(facts))


def diagnose_host(facts: HostFacts) -> list[Finding]:
    """The same for a machine."""
    return _problems_first(finding for check in host_checks.CHECKS for finding in check(facts))


def is_healthy(findings: list[Finding]) -> bool:
    """A note is no reason to worry; what could not be looked at is one."""
    return all(finding.level is Level.NOTE for finding in findings)


def _problems_first(found: Iterable[Finding]) -> list[Finding]:
    return sorted(found, key=lambda finding: _LEVELS.index(finding.level))
