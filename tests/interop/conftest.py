"""Fixtures: the compiled Java program, and one pair of servers for the whole run.

``COMETMQ_INTEROP_SERVERS=java`` starts RocketMQ 4.9.7's own servers in place of ours. ``COMETMQ_CACHE`` moves the
directory for jars and classes. A missing component ends the run with exit code 3: nothing is skipped silently.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from .java import JavaProgram, MissingComponent, compile_program, fetch_jars, require_tools
from .servers import HERE, ServerFailed, ServerPair, cometmq_commands, java_commands

EXIT_CODE_MISSING = 3


@pytest.fixture(scope="session")
def java_program(tmp_path_factory: pytest.TempPathFactory) -> JavaProgram:
    try:
        require_tools()
        jars = fetch_jars(HERE / "pom.xml")
        classes = compile_program(HERE / "java", jars)
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)
    return JavaProgram(classes=classes, jars=jars, runs=tmp_path_factory.mktemp("java"))


@pytest.fixture(scope="session")
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerPair]:
    directory = tmp_path_factory.mktemp("servers")
    kind = os.environ.get("COMETMQ_INTEROP_SERVERS", "cometmq")
    try:
        if kind == "cometmq":
            commands = cometmq_commands()
        elif kind == "java":
            commands = java_commands(directory / "home")
        else:
            raise MissingComponent(f"COMETMQ_INTEROP_SERVERS={kind}: expected cometmq or java")
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)
    pair = ServerPair(commands, directory / "pair")
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
