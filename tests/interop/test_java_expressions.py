"""RocketMQ's own Java clients subscribe by SQL92 expressions: push, pull, lite pull, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .features import HEADER_ENCODINGS, JAVA_VERSIONS, java_client
from .java import JavaProgram
from .report import TEST_SECONDS_MAX, Report, finish
from .servers import ServerPair

pytestmark = [pytest.mark.interop, pytest.mark.timeout(TEST_SECONDS_MAX)]

SCENARIOS = (
    "expression-push",
    "expression-change",
    "expression-pull",
    "expression-long-polling",
    "expression-lite-pull",
    "expression-refused",
)


@pytest.fixture(scope="module", params=JAVA_VERSIONS)
def report(
    request: pytest.FixtureRequest, java_programs: dict[str, JavaProgram], servers: ServerPair
) -> tuple[str, Report]:
    version = str(request.param)
    prefix = f"expressions-{version.replace('.', '_')}"
    arguments = ["expressions", servers.address, prefix]
    return version, finish(
        java_programs[version].start(prefix, arguments, header_encoding=HEADER_ENCODINGS[0])
    )


@pytest.mark.parametrize("name", SCENARIOS)
def test_java_expressions(
    report: tuple[str, Report], name: str, record_property: Callable[[str, object], None]
) -> None:
    version, outcome = report
    # An expression reads the same however the header of a request was written.
    for encoding in HEADER_ENCODINGS:
        record_property("scenario", (java_client(version, encoding), name))
    outcome.require_ok(name)


def test_every_scenario_is_listed_here(report: tuple[str, Report]) -> None:
    assert sorted(report[1].results) == sorted(SCENARIOS), report[1].ending
