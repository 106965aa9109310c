"""Every program in examples/ prints what its docstring says, at the first run and again, on one ``cometmq up``."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.page_steps import ROOT
from tests.docs.reader import HERE, Reader, reader

EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))
CONSUMER, PRODUCER = EXAMPLES / "quickstart_consumer.py", EXAMPLES / "quickstart_producer.py"
ENDS_BY_ITSELF = [program for program in PROGRAMS if program != CONSUMER]
SECONDS_MAX = 100.0

# What users may rely on: the client, a cluster for tests, the operator's library, and the records of traces.
PUBLIC = {
    *("cometmq.client", "cometmq.client.aio", "cometmq.client.sync", "cometmq.testing"),
    *("cometmq.admin", "cometmq.admin.sync"),
    *("cometmq.client.helpers.log_handler", "cometmq.model.trace"),
}

_RUN = re.compile(r"^\$ ((?:\w+=\S+ )*)python examples/(\w+)\.py\n((?:(?!\$ ).+\n)*)", re.MULTILINE)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def one_reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with reader(tmp_path_factory.mktemp("examples")) as one:
        yield one


def command(program: Path) -> list[str]:
    return [str(HERE), "-W", "error", str(program)]


def environment(one: Reader, **more: str) -> dict[str, str]:
    servers = {"NAMESRV_ADDR": one.name_server, "COMETMQ_NAMESRV_ADDR": one.name_server}
    return {**os.environ, **servers, **more}


def runs_of(program: Path) -> list[tuple[dict[str, str], str]]:
    """The variables and the output of each run that the docstring shows."""
    docstring = ast.get_docstring(ast.parse(program.read_text()), clean=False) or ""
    found = []
    for variables, name, output in _RUN.findall(docstring):
        assert name == program.stem
        pairs = dict(pair.split("=", 1) for pair in variables.split())
        found.append((pairs, output))
    return found


@pytest.mark.parametrize("program", ENDS_BY_ITSELF, ids=lambda program: program.stem)
def test_prints_what_its_docstring_says(program: Path, one_reader: Reader) -> None:
    runs = runs_of(program)
    assert runs
    for variables, expected in [*runs, *runs]:
        done = subprocess.run(
            command(program),
            cwd=one_reader.directory,
            env=environment(one_reader, **variables),
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        assert (done.stdout, done.returncode) == (expected, 0), done.stderr


def test_the_quickstart_consumer_prints_what_the_producer_sends(one_reader: Reader) -> None:
    with subprocess.Popen(
        command(CONSUMER),
        stdout=subprocess.PIPE,
        text=True,
        env=environment(one_reader),
        # Ctrl-C may be ignored here, as in a job in the background; that would be inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as consumer:
        try:
            assert consumer.stdout is not None
            assert consumer.stdout.readline() == "waiting; stop with Ctrl-C\n"
            subprocess.run(
                command(PRODUCER),
                env=environment(one_reader),
                stdout=subprocess.DEVNULL,
                check=True,
            )
            # Not in order: listeners run side by side. An earlier run of the producer may have sent the same.
            wanted = {f"hello {number}\n" for number in range(10)}
            while wanted:
                line = consumer.stdout.readline()
                assert line, "the consumer has ended"
                wanted.discard(line)
            consumer.send_signal(signal.SIGINT)
            assert consumer.stdout.read().endswith("stopped\n")
            assert consumer.wait(SECONDS_MAX) == 0
        finally:
            consumer.kill()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_uses_what_users_may_rely_on(program: Path) -> None:
    modules = set()
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.module
            modules.add(node.module)
        elif isinstance(node, ast.Import):
            modules.update(name.name for name in node.names)
    ours = {module for module in modules if module.split(".")[0] == "cometmq"}
    assert ours <= PUBLIC
    assert {module.split(".")[0] for module in modules - ours} <= sys.stdlib_module_names
    # A program's own directory comes first on the path.
    assert program.stem not in sys.stdlib_module_names


def test_the_readme_lists_every_program() -> None:
    listed = re.findall(r"\]\((\w+\.py)\)", (EXAMPLES / "README.md").read_text())
    assert sorted(set(listed)) == [program.name for program in PROGRAMS]
