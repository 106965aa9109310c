"""RocketMQ's own Java clients: delay levels, retries and dead letters, requests and replies.

They have a broker of their own, whose delay levels are short enough to wait for.
"""

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
    "delay-levels",
    "delay-level-above-the-highest",
    "retry-until-success",
    "retry-dead-letter",
    "retry-dead-letter-at-once",
    "retry-orderly-dead-letter",
    "request-reply",
    "request-without-reply",
)
VARIANTS = [(version, encoding) for version in JAVA_VERSIONS for encoding in HEADER_ENCODINGS]


@pytest.fixture(scope="session", params=VARIANTS, ids=lambda variant: "-".join(variant))
def later_variant(request: pytest.FixtureRequest) -> tuple[str, str]:
    version, encoding = request.param
    return version, encoding


@pytest.fixture(scope="session")
def later_report(
    later_variant: tuple[str, str],
    java_programs: dict[str, JavaProgram],
    quick_servers: ServerPair,
) -> Report:
    version, encoding = later_variant
    run = "-".join((version, encoding, "later")).replace(".", "_").lower()
    arguments = ["later", quick_servers.address, run]
    return finish(java_programs[version].start(run, arguments, header_encoding=encoding))


@pytest.mark.parametrize("name", SCENARIOS)
def test_java_client_later(
    later_variant: tuple[str, str], later_report: Report, name: str, record_property: Record
) -> None:
    record_property("scenario", (java_client(*later_variant), name))
    later_report.require_ok(name)


def test_every_later_scenario_is_listed_here(later_report: Report) -> None:
    assert sorted(later_report.results) == sorted(SCENARIOS), later_report.ending
