"""A how-to page as a reader works through it: files are written, commands run, and what they print is what is shown.

- A ``yaml`` or ``python`` block whose first line is ``# NAME.yaml`` or ``# NAME.py`` becomes that file; other Python is
  run as a program.
- In a ``console`` block ``$`` begins a command and ``>`` continues it; the lines below must be in its output, in their
  order. What differs from run to run is not compared: times, dates, ids, rates.

``cometmq pipeline`` runs in the session of the tests, everything else in a shell.
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

from tests.spark.pipeline_runs import cometmq

ROOT = Path(__file__).parents[2]
ADDRESS = "127.0.0.1:9876"

_BLOCK = re.compile(r"^```(console|python|yaml)\n(.*?)^```", re.DOTALL | re.MULTILINE)
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
_SECONDS_MAX = 60.0


@dataclass(frozen=True)
class Step:
    """``text`` is a command of a shell, or a Python program."""

    kind: str
    text: str
    expected: list[str]


def work_through(
    page: str, directory: Path, name_servers: str, *, has_numbers: bool = True
) -> None:
    """Raises AssertionError where the page and what happens differ."""
    with _inside(directory, name_servers):
        for kind, text in _BLOCK.findall((ROOT / "docs" / "howto" / page).read_text()):
            file = _FILE.match(text)
            if file and kind != "console":
                (directory / file[1]).write_text(text)
            elif kind == "python":
                program = text.replace(ADDRESS, name_servers)
                _shell([sys.executable, "-W", "error", "-"], program)
            elif kind == "console":
                for step in steps(text):
                    _take(step, has_numbers=has_numbers)


def steps(text: str) -> Iterator[Step]:
    command: list[str] = []
    expected: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield Step("console", "\n".join(command), expected)
            command, expected = [line[2:]], []
        elif line.startswith("> ") and not expected:
            command.append(line[2:])
        elif line.strip():
            expected.append(line)
    if command:
        yield Step("console", "\n".join(command), expected)


def _take(step: Step, *, has_numbers: bool) -> None:
    if step.text.startswith("cometmq pipeline ") and ">" not in step.text:
        command, may_fail, _ = step.text.partition(" || true")
        printed = cometmq(*shlex.split(command)[1:], code=2 if may_fail else 0)
    else:
        printed = _shell(["bash", "-c", f"set -o pipefail; {step.text}"], "")
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


def _shell(command: list[str], stdin: str) -> str:
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@contextlib.contextmanager
def _inside(directory: Path, name_servers: str) -> Iterator[None]:
    """In a directory of its own, with the cluster of the test as the one that commands find."""
    before = dict(os.environ)
    os.environ["NAMESRV_ADDR"] = name_servers
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    try:
        with contextlib.chdir(directory):
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)
