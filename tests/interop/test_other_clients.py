"""The Go client and a Node client that speaks remoting against our name server and broker.

Their programs are under ``go/`` and ``node/``. As with Java, one process runs all scenarios and each is a test here.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import required
from .features import GO, NODE
from .programs import Program, go_program, node_program
from .report import TEST_SECONDS_MAX, Report, RestartReport, finish, run_around_restart
from .servers import HERE, ServerPair

pytestmark = [pytest.mark.interop, pytest.mark.timeout(TEST_SECONDS_MAX)]

Record = Callable[[str, object], None]

COMMON = (
    "topic-creation",
    "send-sync",
    "send-compressed",
    "send-large",
    "push-backlog",
    "push-tag-filter",
    "push-broadcast",
    "push-two-consumers",
)
SCENARIOS = {
    GO: (
        *COMMON,
        "topic-auto-creation",
        "send-async",
        "send-one-way",
        "send-batch",
        "pull-consumer",
        "push-orderly",
    ),
    NODE: (*COMMON, "send-concurrent"),
}
BEGINNINGS = ("from-first", "from-last", "from-timestamp")
EACH_SCENARIO = [(client, name) for client, names in SCENARIOS.items() for name in names]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Program]:
    with required():
        return {
            GO: go_program(HERE / "go", tmp_path_factory.mktemp("go")),
            NODE: node_program(HERE / "node", tmp_path_factory.mktemp("node")),
        }


@pytest.fixture(scope="session")
def reports(programs: dict[str, Program], servers: ServerPair) -> dict[str, Report]:
    """All scenarios that need nothing special."""
    return {
        client: _run(program, client, "scenarios", servers) for client, program in programs.items()
    }


@pytest.fixture(scope="session")
def beginnings(programs: dict[str, Program], guarded_servers: ServerPair) -> dict[str, Report]:
    return {
        client: _run(program, client, "beginnings", guarded_servers)
        for client, program in programs.items()
    }


@pytest.fixture(scope="session", params=[GO, NODE])
def restart(
    request: pytest.FixtureRequest, programs: dict[str, Program], servers: ServerPair
) -> tuple[str, RestartReport]:
    client = str(request.param)
    arguments = [servers.address, servers.broker_address, _prefix(client)]
    return client, run_around_restart(
        servers, lambda mode: programs[client].start(mode, [mode, *arguments])
    )


@pytest.mark.parametrize(("client", "name"), EACH_SCENARIO)
def test_client(
    reports: dict[str, Report], client: str, name: str, record_property: Record
) -> None:
    record_property("scenario", (client, name))
    reports[client].require_ok(name)


@pytest.mark.parametrize("client", [GO, NODE])
def test_every_scenario_is_listed_here(reports: dict[str, Report], client: str) -> None:
    assert sorted(reports[client].results) == sorted(SCENARIOS[client]), reports[client].ending


@pytest.mark.parametrize("client", [GO, NODE])
@pytest.mark.parametrize("name", BEGINNINGS)
def test_client_in_a_new_group(
    beginnings: dict[str, Report], client: str, name: str, record_property: Record
) -> None:
    record_property("scenario", (client, name))
    beginnings[client].require_ok(name)


def test_client_over_a_broker_restart(
    restart: tuple[str, RestartReport], record_property: Record
) -> None:
    client, reports = restart
    for name, report in (("before-restart", reports.before), ("after-restart", reports.after)):
        record_property("scenario", (client, name))
        report.require_ok(name)


def _run(program: Program, client: str, mode: str, servers: ServerPair) -> Report:
    arguments = [mode, servers.address, servers.broker_address, _prefix(client)]
    return finish(program.start(mode, arguments))


def _prefix(client: str) -> str:
    return client.split()[0].lower()
