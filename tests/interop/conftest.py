"""Fixtures: the compiled programs, and servers for the whole run.

``java_program``: the program around Java's client 4.9.8; ``java_programs``: by version. ``servers``: name server and
broker. ``guarded_servers``: another pair that speaks TLS too and takes no message to be in memory, so that new groups
begin where they ask to. ``quick_servers``: a pair with short delay levels that soon checks transactions. All live for
the session; a test may restart a broker if it leaves it running.

``COMETMQ_INTEROP_SERVERS=rocketmq-4.9.7`` (or ``rocketmq-5.5.0``) starts RocketMQ's own servers in place of ours.
``COMETMQ_CACHE`` moves the directory for what is fetched and built. A missing component ends the run with exit code 3:
nothing is skipped silently.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.distribution import Distribution

from . import distribution
from .certificates import Certificates
from .features import JAVA_VERSIONS
from .java import (
    JavaProgram,
    MissingComponent,
    cache_root,
    compile_program,
    fetch_jars,
    require_tools,
)
from .programs import go_program, node_program
from .record import Recorder
from .servers import HERE, ServerCommands, ServerFailed, ServerPair
from .systems import OURS, POMS, commands_of

EXIT_CODE_MISSING = 3
EVERY_TOOL = ("java", "javac", "mvn", "go", "node", "npm")


def server_kind() -> str:
    """The make of the servers under test."""
    return os.environ.get("COMETMQ_INTEROP_SERVERS") or OURS


def pytest_configure(config: pytest.Config) -> None:
    # With several workers (-n) their reports all come to the process that started them.
    if server_kind() == OURS and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(), "cometmq-interop-recorder")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    # A worker cannot choose the exit code of the run, so what all tests together need is looked for in advance. It is
    # fetched in advance, too: several workers would do the same work, and a download counts for the time of no test.
    if session.config.getoption("numprocesses", None):
        with required():
            require_tools(EVERY_TOOL)
            for version in JAVA_VERSIONS:
                compile_program(HERE / "java", fetch_jars(HERE / "pom.xml", version), version)
            for pom in POMS.values():
                fetch_jars(pom)
            go_program(HERE / "go", cache_root())
            node_program(HERE / "node", cache_root())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: distribution.rank(item.path.name))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Distribution | None:
    # Other ways to spread the tests may be asked for.
    if config.getoption("dist") == "loadscope":
        return Distribution(config, log, distribution.group_of)
    return None


@pytest.fixture(scope="session")
def java_programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, JavaProgram]:
    programs = {}
    with required():
        require_tools()
        for version in JAVA_VERSIONS:
            jars = fetch_jars(HERE / "pom.xml", version)
            classes = compile_program(HERE / "java", jars, version)
            runs = tmp_path_factory.mktemp(f"java-{version}-")
            programs[version] = JavaProgram(classes=classes, jars=jars, runs=runs)
    return programs


@pytest.fixture(scope="session")
def java_program(java_programs: dict[str, JavaProgram]) -> JavaProgram:
    return java_programs[JAVA_VERSIONS[0]]


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> ServerCommands:
    kind = server_kind()
    with required():
        return commands_of(kind, tmp_path_factory.mktemp("system") / "home")


@pytest.fixture(scope="session")
def servers(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    commands: ServerCommands,
) -> Iterator[ServerPair]:
    yield from _running(request, ServerPair(commands, tmp_path_factory.mktemp("servers") / "pair"))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates") / "made")


@pytest.fixture(scope="session")
def guarded_servers(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    commands: ServerCommands,
    certificates: Certificates,
) -> Iterator[ServerPair]:
    pair = ServerPair(
        commands,
        tmp_path_factory.mktemp("guarded") / "pair",
        broker_settings={"accessMessageInMemoryMaxRatio": 0},
        tls=certificates,
    )
    yield from _running(request, pair)


@pytest.fixture(scope="session")
def quick_servers(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    commands: ServerCommands,
) -> Iterator[ServerPair]:
    pair = ServerPair(
        commands,
        tmp_path_factory.mktemp("quick") / "pair",
        broker_settings={
            "messageDelayLevel": "1s 2s 1s 1s 1s 1s",
            "transactionTimeOut": 1000,
            "transactionCheckInterval": 1000,
            "transactionCheckMax": 60,
        },
    )
    yield from _running(request, pair)


@contextlib.contextmanager
def required() -> Iterator[None]:
    """Ends the run when a component is missing inside."""
    try:
        yield
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)


def _running(request: pytest.FixtureRequest, pair: ServerPair) -> Iterator[ServerPair]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(pair.running())
        except ServerFailed as error:
            # Said once, not once for each test.
            pytest.exit(
                f"interop tests cannot run: {error}", returncode=pytest.ExitCode.TESTS_FAILED
            )
        yield pair
    if not request.session.testsfailed:
        _forget(pair.store)


def _forget(store: Path) -> None:
    # A store takes more than a gigabyte, and pytest keeps the directories of three runs. After a failure it stays,
    # because somebody will want to look into it.
    shutil.rmtree(store, ignore_errors=True)
