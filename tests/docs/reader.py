"""A reader: somebody with one ``cometmq up``, a directory, and the pages.

The servers get free ports. Where a page says 127.0.0.1:9876 or 127.0.0.1:10911, programs are given the real address,
and what they print is turned back.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.page_steps import Command, File, Program, Session, Step, Tests

NAME_SERVER, BROKER = "127.0.0.1:9876", "127.0.0.1:10911"
UP = "cometmq up --data ./my-queue"
DASHBOARD = "http://127.0.0.1:8090/"
HERE = Path(sys.executable)
"""The Python that runs the tests."""

_SECONDS_MAX = 120.0
# Done before the first page is opened.
_SET_UP = re.compile(r"make |pip install |export PATH=|cometmq up ")
_SERVERS = re.compile(r"mqnamesrv|mqbroker|mqcontroller|mqshutdown")
_END_OF_PART = "\x1e"
# What differs from run to run: times, ids, rates, and the widths of table columns, which follow what stands in them.
_VARYING = [
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "DATE"),
    (re.compile(r"\b[0-9A-F]{32}\b"), "ID"),
    (re.compile(r"[\d,]+ rows/s"), "RATE"),
    (re.compile(r"\d{8}T\d{6}\.\d{3}Z"), "BACKUP"),
    (re.compile(r"\d+(\.\d+)? [kMG]?B\b"), "SIZE"),
    (re.compile(r"[\d,]+ records, \d+ tables|\d+ tables"), "COUNTS"),
    (re.compile(r"offset \d+"), "OFFSET"),
    (re.compile(r"topics +\d+"), "TOPICS"),
    (re.compile(r"\d+\.\d+ s\b"), "SECONDS"),
    (re.compile(r" +"), " "),
    (re.compile(r" \|"), "|"),
    (re.compile(r"-{2,}"), "--"),
]


@dataclass(frozen=True)
class Reader:
    directory: Path
    name_server: str
    broker: str
    told_by_up: str
    python: Path

    def take(self, step: Step, *, has_numbers: bool = True) -> None:
        """Raises AssertionError where the page and what happens differ.

        Args:
            has_numbers: False where numbers are measured, so that nobody knows them beforehand.
        """
        if isinstance(step, File):
            (self.directory / step.name).write_text(step.text)
        elif isinstance(step, Program):
            _compare(step.text, step.expected, self._python(step.text))
        elif isinstance(step, Session):
            mark = f'\nprint("{_END_OF_PART}", flush=True)\n'
            printed = self._python("".join(part.text + mark for part in step.parts))
            outputs = printed.split(f"{_END_OF_PART}\n")
            for part, output in zip(step.parts, outputs[:-1], strict=True):
                _compare(part.text, part.expected, output)
        elif isinstance(step, Tests):
            self._pytest(step.text)
        else:
            self._command(step, has_numbers)

    def _python(self, text: str) -> str:
        return self._run([str(self.python), "-W", "error", "-"], self._with_addresses(text))

    def _pytest(self, text: str) -> None:
        file = self.directory / "test_example.py"
        file.write_text(self._with_addresses(text))
        # Without the options of this repository: a reader has others.
        command = [
            str(self.python),
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-c",
            os.devnull,
        ]
        self._run([*command, "--rootdir", str(self.directory), str(file)], "")

    def _command(self, step: Command, has_numbers: bool) -> None:
        if step.text.endswith(UP):
            assert [_plain(line) for line in self.told_by_up.splitlines()] == [
                _plain(line) for line in step.expected
            ]
        if _SET_UP.match(step.text) or _SERVERS.search(step.text):
            return
        printed = self._run(["bash", "-c", f"exec 2>&1; set -o pipefail; {step.text}"], "")
        found = [_plain(line, has_numbers) for line in printed.splitlines() if line.strip()]
        wanted = [_plain(line, has_numbers) for line in step.expected]
        if step.text.startswith("cometmq pipeline run"):
            # How many lines of progress there are is a matter of time; pages show some of them. Queries of one
            # pipeline run side by side, and whichever is first tells first.
            found = sorted(line for line in found if line in wanted)
            wanted.sort()
        assert found == wanted, f"{step.text}\nprinted\n{printed}"

    def _run(self, command: list[str], stdin: str) -> str:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.directory,
            env={**_environment(self.python), "NAMESRV_ADDR": self.name_server},
            timeout=_SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, f"{stdin or command}\n{done.stdout}\n{done.stderr}"
        return done.stdout.replace(self.name_server, NAME_SERVER).replace(self.broker, BROKER)

    def _with_addresses(self, text: str) -> str:
        return text.replace(NAME_SERVER, self.name_server).replace(BROKER, self.broker)


@contextlib.contextmanager
def reader(directory: Path, python: Path = HERE) -> Iterator[Reader]:
    """Servers of their own, with their data below ``directory``, as long as the block runs.

    Args:
        python: of the environment that the reader has installed this software in.
    """
    command = [
        *(str(python.parent / "cometmq"), *shlex.split(UP)[1:]),
        *("--namesrv-port", "0", "--broker-port", "0", "--log-level", "ERROR"),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=directory, env=_environment(python)
    ) as servers:
        try:
            assert servers.stdout is not None
            lines = [servers.stdout.readline() for _ in range(5)]
            name_server, broker = lines[0].split()[2], lines[1].split()[1]
            dashboard = lines[3].split()[1]
            told = "".join(lines).replace(name_server, NAME_SERVER).replace(broker, BROKER)
            told = told.replace(dashboard, DASHBOARD)
            yield Reader(directory, name_server, broker, told, python)
        finally:
            servers.terminate()


def _environment(python: Path) -> dict[str, str]:
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"}
    if python != HERE:
        # There, nothing of the environment that the tests run in is to be seen.
        environment.pop("PYTHONPATH", None)
    return environment


def _compare(program: str, expected: str, printed: str) -> None:
    assert printed.rstrip() == expected.rstrip(), f"{program}\nprinted\n{printed}"


def _plain(line: str, has_numbers: bool = True) -> str:
    for pattern, word in _VARYING:
        line = pattern.sub(word, line)
    return line.strip() if has_numbers else re.sub(r"\d+", "N", line).strip()
