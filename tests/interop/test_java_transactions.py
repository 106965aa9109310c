"""RocketMQ's own Java clients: messages that depend on a local transaction, and what became of those nobody ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .features import HEADER_ENCODINGS, JAVA_VERSIONS, java_client
from .java import JavaProgram
from .report import TEST_SECONDS_MAX, Report, finish
from .servers import ServerPair

pytestmark = [pytest.mark.interop, pytest.mark.timeout(TEST_SECONDS_MAX)]

Record = Callable[[str, object], None]

SCENARIOS = ("transaction-outcomes", "transaction-check-by-another-producer")
VARIANTS = [(version, encoding) for version in JAVA_VERSIONS for encoding in HEADER_ENCODINGS]


@pytest.fixture(scope="session", params=VARIANTS, ids=lambda variant: "-".join(variant))
def variant(request: pytest.FixtureRequest) -> tuple[str, str]:
    version, encoding = request.param
    return version, encoding


@pytest.fixture(scope="session")
def report(
    variant: tuple[str, str], java_programs: dict[str, JavaProgram], quick_servers: ServerPair
) -> Report:
    version, encoding = variant
    run = "-".join((version, encoding, "transactions")).replace(".", "_").lower()
    arguments = ["transactions", quick_servers.address, run]
    return finish(java_programs[version].start(run, arguments, header_encoding=encoding))


@pytest.mark.parametrize("name", SCENARIOS)
def test_java_client_transactions(
    variant: tuple[str, str], report: Report, name: str, record_property: Record
) -> None:
    record_property("scenario", (java_client(*variant), name))
    report.require_ok(name)


def test_every_transaction_scenario_is_listed_here(report: Report) -> None:
    assert sorted(report.results) == sorted(SCENARIOS), report.ending
