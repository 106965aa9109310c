"""What a reader does who works through a page: its code blocks as steps, in their order.

- ``python``: a program that runs by itself. One with ``test_`` functions is given to pytest; one that begins with
  ``# NAME.py`` is a file, as is ``yaml`` that begins with ``# NAME.yaml``.
- ``py``: all of them on a page are pasted, one after the other, into one Python session.
- ``text`` right behind one of these is exactly what it prints. Without it, it prints nothing.
- ``console``: ``$`` begins a command, ``>`` continues it, the lines below are what it prints.

Blocks of other languages are not run: ``sh`` is for commands that need a cluster of several machines, or Java tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"# ([\w.-]+\.(?:yaml|py))\n")
_TEST = re.compile(r"^(async )?def test_", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#]+\.md)\)")


@dataclass(frozen=True)
class File:
    name: str
    text: str


@dataclass(frozen=True)
class Program:
    text: str
    expected: str


@dataclass(frozen=True)
class Tests:
    text: str


@dataclass(frozen=True)
class Session:
    """Programs that follow each other in one process."""

    parts: tuple[Program, ...]


@dataclass(frozen=True)
class Command:
    """A command of a shell, and the lines that it prints."""

    text: str
    expected: tuple[str, ...]


Step = File | Program | Tests | Session | Command


def pages() -> list[Path]:
    """The README and all that docs/README.md links to, in its order."""
    contents = ROOT / "docs" / "README.md"
    linked = [contents.parent / link for link in _LINK.findall(contents.read_text())]
    return list(dict.fromkeys([ROOT / "README.md", *linked]))


def steps_of(page: str) -> list[Step]:
    """Of the text of a page."""
    blocks: list[tuple[str, str]] = _BLOCK.findall(page)
    steps: list[Step] = []
    session: list[Program] = []
    for (kind, text), (next_kind, output) in pairwise([*blocks, ("", "")]):
        file = _FILE.match(text)
        program = Program(text, output if next_kind == "text" else "")
        if file and kind in ("python", "yaml"):
            steps.append(File(file[1], text))
        elif kind == "python":
            steps.append(Tests(text) if _TEST.search(text) else program)
        elif kind == "py":
            session.append(program)
        elif kind == "console":
            steps += _commands(text)
    return [*steps, Session(tuple(session))] if session else steps


def _commands(text: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        first, *lines = part.splitlines()
        command = [first]
        while lines and lines[0].startswith("> "):
            command.append(lines.pop(0)[2:])
        yield Command("\n".join(command), tuple(line for line in lines if line.strip()))
