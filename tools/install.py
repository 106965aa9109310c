"""Installs a lock file and this package into the environment of the Python that runs it, and shows how far it is.

    tools/install.py requirements-dev.lock

pip itself either says nothing for a minute or prints several hundred lines. On a terminal one line is written over
and over; elsewhere there is a line for each large package and each tenth. What pip said is shown when it fails.
"""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).parents[1]
LARGE_MB = 10.0

_REQUIREMENT = re.compile(r"^([\w.-]+)(?:\[.*\])?==(\S+)", re.MULTILINE)
_COLLECTING = re.compile(
    r"(?:Collecting|Requirement already satisfied:) ([\w.-]+)(?:\[.*\])?==(\S+)"
)
_IGNORING = re.compile(r"Ignoring [\w.-]+: markers")
_SIZE = re.compile(r" +Downloading \S+ \(([\d.]+) (kB|MB|GB)\)")
_BUILDING = re.compile(r" +(?:Building wheel|Running setup.py install) for (\S+?):? .*started")


class Progress:
    """What to tell, from the lines that pip prints."""

    def __init__(self, lock: str) -> None:
        self.total = len(_REQUIREMENT.findall(lock))
        self.count = 0
        self.text = ""

    def take(self, line: str) -> bool:
        """Changes ``text`` if there is something new. Whether that is worth a line of its own."""
        if collecting := _COLLECTING.match(line):
            self.count += 1
            self.text = f"[{self.count}/{self.total}] {collecting[1]} {collecting[2]}"
            return self.count % 10 == 0
        elif _IGNORING.match(line):
            # For another system or Python.
            self.total -= 1
        elif size := _SIZE.match(line):
            megabytes = float(size[1]) * {"kB": 0.001, "MB": 1, "GB": 1000}[size[2]]
            if megabytes >= LARGE_MB:
                self.text += f", {megabytes:.0f} MB"
                return True
        elif building := _BUILDING.match(line):
            self.text = f"all {self.total} are here; building {building[1]}"
            return True
        elif re.match(r"Installing collected packages: .*,", line):
            self.text = f"all {self.total} are here; unpacking them"
            return True
        return False


class Display:
    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._is_terminal = output.isatty()
        self._began = time.monotonic()

    def show(self, text: str, *, is_worth_a_line: bool) -> None:
        if self._is_terminal:
            seconds = time.monotonic() - self._began
            self._write(f"\r\033[K  {text}  ({seconds:.0f} s)")
        elif is_worth_a_line:
            self._write(f"  {text}\n")

    def end(self, text: str) -> None:
        before = "\r\033[K" if self._is_terminal else ""
        self._write(f"{before}  {text} in {time.monotonic() - self._began:.0f} s\n")

    def _write(self, text: str) -> None:
        self._output.write(text)
        self._output.flush()


def main(lock_file: str) -> int:
    progress, display = Progress(Path(lock_file).read_text()), Display(sys.stdout)
    print(
        f"installing what is needed into {sys.prefix}: a minute or two the first time", flush=True
    )
    for arguments in (
        ["--require-hashes", "-r", lock_file],
        ["--no-deps", "--editable", str(ROOT)],
    ):
        code = _install(arguments, progress, display)
        if code != 0:
            return code
    display.end(f"{progress.count} packages and cometmq itself installed")
    return 0


def _install(arguments: list[str], progress: Progress, display: Display) -> int:
    command = [
        *(sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"),
        *("--no-color", "--progress-bar", "off", *arguments),
    ]
    said: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as pip:
        for line in _lines(pip):
            is_news = line is not None and progress.take(line)
            display.show(progress.text, is_worth_a_line=is_news)
            if line is not None:
                said.append(line)
    if pip.returncode != 0:
        print(
            "", *said, f"cannot set up: pip failed, see above: {command}", sep="\n", file=sys.stderr
        )
    return pip.returncode


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str | None]:
    """Each line as it comes, and None for each second without one."""
    assert process.stdout is not None
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(timeout=1.0):
                yield None
                continue
            part = os.read(process.stdout.fileno(), 65536)
            if not part:
                break
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
