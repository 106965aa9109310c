"""RocketMQ's own Java client 4.9.8 against our name server and broker.

The scenarios are Java programs under ``java/``; one process runs many of them, because a Java start costs more than
most scenarios. Here each is a test of its own, so that a report names what broke.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from .java import JavaProgram, RunningProgram
from .servers import ServerPair

RUN_SECONDS_MAX = 300
WAITING_SECONDS_MAX = 120
UNREGISTERED_SECONDS_MAX = 10

# A session fixture's work counts for the first test that asks for it, so the limit is that of a whole run.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(RUN_SECONDS_MAX + WAITING_SECONDS_MAX)]

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
BEFORE_RESTART = ("before-restart-concurrent", "before-restart-orderly", "during-restart")
AFTER_RESTART = ("after-restart-store", "after-restart-concurrent", "after-restart-orderly")


@dataclass(frozen=True)
class Report:
    """What one run of the Java program said: scenario name to None (ok) or the reason of its failure."""

    results: dict[str, str | None]
    ending: str
    errors: str

    def require_ok(self, name: str) -> None:
        if name not in self.results:
            pytest.fail(f"{name} was not reported; {self.ending}\n{self.errors}", pytrace=False)
        reason = self.results[name]
        if reason is not None:
            pytest.fail(f"{name}: {reason}\n{self.errors}", pytrace=False)


@pytest.fixture(scope="session", params=["JSON", "ROCKETMQ"])
def report(
    request: pytest.FixtureRequest, java_program: JavaProgram, servers: ServerPair
) -> Report:
    """All scenarios, once in each of the two header encodings that a client may choose."""
    encoding = str(request.param)
    name = encoding.lower()
    arguments = ["scenarios", servers.address, name]
    return _finish(java_program.start(name, arguments, header_encoding=encoding))


@dataclass(frozen=True)
class RestartReport:
    """Two runs of the program around a restart of the broker."""

    before: Report
    after: Report
    was_unregistered: bool


@pytest.fixture(scope="session")
def restart(java_program: JavaProgram, servers: ServerPair) -> RestartReport:
    arguments = [servers.address, "restart"]
    first = java_program.start("before", ["before-restart", *arguments], header_encoding="JSON")
    deadline = time.monotonic() + WAITING_SECONDS_MAX
    while "waiting" not in first.lines() and first.process.poll() is None:
        if time.monotonic() > deadline:
            break  # Its report will lack a line, and say so.
        time.sleep(0.05)
    servers.stop_broker()
    was_unregistered = _is_unregistered(servers)
    servers.start_broker()
    first.go_on()
    # The first one may still wait for a pull that died with the old broker; the second has other groups.
    second = java_program.start("after", ["after-restart", *arguments], header_encoding="JSON")
    return RestartReport(_finish(first), _finish(second), was_unregistered)


@pytest.mark.parametrize("name", SCENARIOS)
def test_java_client(report: Report, name: str) -> None:
    report.require_ok(name)


def test_every_scenario_is_listed_here(report: Report) -> None:
    assert sorted(report.results) == sorted(SCENARIOS), report.ending


@pytest.mark.parametrize("name", BEFORE_RESTART)
def test_java_client_before_a_broker_restart(restart: RestartReport, name: str) -> None:
    restart.before.require_ok(name)


@pytest.mark.parametrize("name", AFTER_RESTART)
def test_java_client_after_a_broker_restart(restart: RestartReport, name: str) -> None:
    restart.after.require_ok(name)


def test_stopped_broker_leaves_the_route(restart: RestartReport) -> None:
    assert restart.was_unregistered


def _finish(program: RunningProgram) -> Report:
    ended = program.wait(RUN_SECONDS_MAX)
    ending = (
        f"exit code {program.process.returncode}" if ended else f"killed after {RUN_SECONDS_MAX} s"
    )
    results: dict[str, str | None] = {}
    for line in program.lines():
        verdict, _, rest = line.partition(" ")
        name, _, reason = rest.partition(" ")
        if verdict in ("ok", "FAILED"):
            results[name] = reason if verdict == "FAILED" else None
    return Report(results, ending, program.errors())


def _is_unregistered(servers: ServerPair) -> bool:
    deadline = time.monotonic() + UNREGISTERED_SECONDS_MAX
    while servers.has_route():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
