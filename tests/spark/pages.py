"""A how-to page as a reader works through it: files are written, commands run, and what they print is what is shown.

- A ``yaml`` or ``python`` block whose first line is ``# NAME.yaml`` or ``# NAME.py`` becomes that file; other Python is
  run as a program.
- The first ``cometmq up ...`` in its text is the broker that it wants; here it gets ports that are free.
- In a ``console`` block ``$`` begins a command and ``>`` continues it; the lines below must be in its output, in their
  order. What differs from run to run is not compared: times, dates, ids, rates.
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

ROOT = Path(__file__).parents[2]
ADDRESS = "127.0.0.1:9876"

_BLOCK = re.compile(r"^```(console|python|yaml)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SERVERS = re.compile(r"`(cometmq up [^`]*)`")
_FILE = re.compile(r"# ([\w.-]+\.(?:yaml|py))\n")
_VARYING = [
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "DATE"),
    (re.compile(r"\b[0-9A-F]{32}\b"), "ID"),
    (re.compile(r"[\d,]+ rows/s"), "RATE"),
    (re.compile(r"\d+\.\d+ s\b"), "SECONDS"),
    # Widths of table columns follow what stands in them.
    (re.compile(r" +"), " "),
    (re.compile(r" \|"), "|"),
    (re.compile(r"-{2,}"), "--"),
]
_SECONDS_MAX = 120.0


@dataclass(frozen=True)
class Step:
    """A command of a shell, and the lines that it must print."""

    text: str
    expected: list[str]


def work_through(page: str, directory: Path, *, has_numbers: bool = True) -> None:
    """In an empty directory. Raises AssertionError where the page and what happens differ."""
    text = (ROOT / "docs" / "howto" / page).read_text()
    wanted = _SERVERS.search(text)
    assert wanted, f"{page} does not tell how to start a broker"
    with _inside(directory), _servers(wanted[1]) as address:
        os.environ["NAMESRV_ADDR"] = address
        for kind, block in _BLOCK.findall(text):
            file = _FILE.match(block)
            if file and kind != "console":
                (directory / file[1]).write_text(block)
            elif kind == "python":
                _output([sys.executable, "-W", "error", "-"], block.replace(ADDRESS, address))
            elif kind == "console":
                for step in steps(block):
                    _take(step, has_numbers=has_numbers)


def steps(text: str) -> Iterator[Step]:
    command: list[str] = []
    expected: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield Step("\n".join(command), expected)
            command, expected = [line[2:]], []
        elif line.startswith("> ") and not expected:
            command.append(line[2:])
        elif line.strip():
            expected.append(line)
    if command:
        yield Step("\n".join(command), expected)


def _take(step: Step, *, has_numbers: bool) -> None:
    printed = _output(["bash", "-c", f"set -o pipefail; {step.text}"], "")
    printed = printed.replace(os.environ["NAMESRV_ADDR"], ADDRESS)
    found = [_plain(line, has_numbers) for line in printed.splitlines()]
    at = 0
    for line in step.expected:
        wanted = _plain(line, has_numbers)
        assert wanted in found[at:], f"{step.text}\n{line!r} does not follow in\n{printed}"
        at = found.index(wanted, at) + 1


def _plain(line: str, has_numbers: bool) -> str:
    for pattern, word in _VARYING:
        line = pattern.sub(word, line)
    return line.strip() if has_numbers else re.sub(r"\d+", "N", line).strip()


def _output(command: list[str], stdin: str) -> str:
    done = subprocess.run(
        command,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@contextlib.contextmanager
def _servers(command: str) -> Iterator[str]:
    """The address of the name server while they run."""
    ports = ["--namesrv-port", "0", "--broker-port", "0"]
    with subprocess.Popen(
        [*shlex.split(command), *ports, "--log-level", "ERROR"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("name server "), line
            yield line.split()[2]
        finally:
            process.terminate()


@contextlib.contextmanager
def _inside(directory: Path) -> Iterator[None]:
    """With our commands found first."""
    before = dict(os.environ)
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    try:
        with contextlib.chdir(directory):
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)
