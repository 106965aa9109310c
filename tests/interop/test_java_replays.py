"""RocketMQ's own Java clients and admin tools: positions of a group moved while it runs, copied and read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .features import HEADER_ENCODINGS, JAVA_VERSIONS, java_client
from .java import JavaProgram
from .report import TEST_SECONDS_MAX, Report, finish
from .servers import ServerPair

pytestmark = [pytest.mark.interop, pytest.mark.timeout(TEST_SECONDS_MAX)]

Record = Callable[[str, object], None]

SCENARIOS = (
    "reset-back-while-running",
    "reset-before-the-first",
    "reset-after-the-last",
    "reset-skip-backlog",
    "reset-while-offline",
    "reset-refused",
    "clone-offsets",
    "consume-time-span",
    "consume-stats",
    "subscription-mismatch",
)
# A client of Java stands still for ten seconds at each reset, so that each version runs with one encoding of headers.
ENCODINGS = dict(zip(JAVA_VERSIONS, HEADER_ENCODINGS, strict=True))


@pytest.fixture(scope="session", params=JAVA_VERSIONS)
def replay_version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def replay_report(
    replay_version: str, java_programs: dict[str, JavaProgram], servers: ServerPair
) -> Report:
    run = f"{replay_version}-replays".replace(".", "_")
    arguments = ["replays", servers.address, run]
    encoding = ENCODINGS[replay_version]
    program = java_programs[replay_version].start(run, arguments, header_encoding=encoding)
    return finish(program)


@pytest.mark.parametrize("name", SCENARIOS)
def test_java_replays(
    replay_version: str, replay_report: Report, name: str, record_property: Record
) -> None:
    # Where a group goes on does not depend on how the header of a request was written.
    for encoding in HEADER_ENCODINGS:
        record_property("scenario", (java_client(replay_version, encoding), name))
    replay_report.require_ok(name)


def test_every_replay_scenario_is_listed_here(replay_report: Report) -> None:
    assert sorted(replay_report.results) == sorted(SCENARIOS), replay_report.ending
