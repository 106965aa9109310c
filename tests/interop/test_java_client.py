"""RocketMQ's own Java clients 4.9.8 and 5.5.0 against our name server and broker.

The scenarios are Java programs under ``java/``; one process runs many of them, because a Java start costs more than
most scenarios. Here each is a test of its own, so that a report names what broke.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .certificates import Certificates
from .features import HEADER_ENCODINGS, JAVA_VERSIONS, java_client
from .java import JavaProgram
from .report import TEST_SECONDS_MAX, Report, RestartReport, finish, run_around_restart
from .servers import ServerPair

pytestmark = [pytest.mark.interop, pytest.mark.timeout(TEST_SECONDS_MAX)]

Record = Callable[[str, object], None]

SCENARIOS = (
    "topic-auto-creation",
    "topic-creation-by-admin",
    "topic-creation-by-producer",
    "topic-permission",
    "topic-deletion",
    "send-sync",
    "send-async",
    "send-one-way",
    "send-batch",
    "send-compressed",
    "send-vip-channel",
    "send-refused",
    "push-two-consumers",
    "push-tag-filter",
    "push-orderly",
    "push-broadcast",
    "push-backlog",
    "pull-consumer",
    "pull-long-polling",
    "lite-pull-consumer",
    "view-by-id",
    "query-by-key",
    "search-by-time",
    "admin-cluster",
    "admin-topic-stats",
    "admin-connections",
    "admin-groups",
    "admin-key-values",
    "admin-write-permission",
)
BEGINNINGS = ("from-first", "from-last", "from-timestamp")
BEFORE_RESTART = ("before-restart-concurrent", "before-restart-orderly", "during-restart")
AFTER_RESTART = ("after-restart-store", "after-restart-concurrent", "after-restart-orderly")

# A send of every kind, a large body, a consumer that is told and one that waits.
OVER_TLS = ("send-sync", "send-batch", "send-refused", "push-two-consumers", "pull-long-polling")

VARIANTS = [(version, encoding) for version in JAVA_VERSIONS for encoding in HEADER_ENCODINGS]


@pytest.fixture(scope="session", params=VARIANTS, ids=lambda variant: "-".join(variant))
def variant(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A client version and one of the two header encodings that it may choose."""
    version, encoding = request.param
    return version, encoding


@pytest.fixture(scope="session")
def report(
    variant: tuple[str, str], java_programs: dict[str, JavaProgram], servers: ServerPair
) -> Report:
    """All scenarios that need nothing special."""
    version, encoding = variant
    run = prefix_of(version, encoding)
    arguments = ["scenarios", servers.address, run]
    return finish(java_programs[version].start(run, arguments, header_encoding=encoding))


@pytest.fixture(scope="session")
def guarded_report(
    variant: tuple[str, str],
    java_programs: dict[str, JavaProgram],
    guarded_servers: ServerPair,
    certificates: Certificates,
) -> Report:
    """The beginnings, and some scenarios again, over TLS."""
    version, encoding = variant
    run = prefix_of(version, encoding, "guarded")
    arguments = ["guarded", guarded_servers.address, run, *BEGINNINGS, *OVER_TLS]
    program = java_programs[version].start(
        run, arguments, header_encoding=encoding, settings=certificates.client_settings()
    )
    return finish(program)


@pytest.fixture(scope="session", params=JAVA_VERSIONS)
def restart(
    request: pytest.FixtureRequest, java_programs: dict[str, JavaProgram], servers: ServerPair
) -> tuple[str, RestartReport]:
    version = str(request.param)
    prefix = prefix_of(version, "restart")
    return version, run_around_restart(
        servers,
        lambda mode: java_programs[version].start(
            f"{prefix}-{mode}", [mode, servers.address, prefix], header_encoding="JSON"
        ),
    )


@pytest.mark.parametrize("name", SCENARIOS)
def test_java_client(
    variant: tuple[str, str], report: Report, name: str, record_property: Record
) -> None:
    record_property("scenario", (java_client(*variant), name))
    report.require_ok(name)


def test_every_scenario_is_listed_here(report: Report) -> None:
    assert sorted(report.results) == sorted(SCENARIOS), report.ending


@pytest.mark.parametrize("name", BEGINNINGS)
def test_java_client_in_a_new_group(
    variant: tuple[str, str],
    guarded_report: Report,
    name: str,
    record_property: Record,
) -> None:
    record_property("scenario", (java_client(*variant), name))
    guarded_report.require_ok(name)


def test_java_client_over_tls(
    variant: tuple[str, str], guarded_report: Report, record_property: Record
) -> None:
    record_property("scenario", (java_client(*variant), "tls"))
    for name in OVER_TLS:
        guarded_report.require_ok(name)


@pytest.mark.parametrize("name", BEFORE_RESTART)
def test_java_client_before_a_broker_restart(
    restart: tuple[str, RestartReport], name: str, record_property: Record
) -> None:
    version, reports = restart
    _record_for_both_encodings(version, name, record_property)
    reports.before.require_ok(name)


@pytest.mark.parametrize("name", AFTER_RESTART)
def test_java_client_after_a_broker_restart(
    restart: tuple[str, RestartReport], name: str, record_property: Record
) -> None:
    version, reports = restart
    _record_for_both_encodings(version, name, record_property)
    reports.after.require_ok(name)


def test_stopped_broker_leaves_the_route(restart: tuple[str, RestartReport]) -> None:
    assert restart[1].was_unregistered


def _record_for_both_encodings(version: str, name: str, record_property: Record) -> None:
    # What a broker keeps over a restart does not depend on how the header of a request was written.
    for encoding in HEADER_ENCODINGS:
        record_property("scenario", (java_client(version, encoding), name))


def prefix_of(*words: str) -> str:
    """The start of topic and group names of a run; no dots, which RocketMQ does not allow in names."""
    return "-".join(words).replace(".", "_").lower()
