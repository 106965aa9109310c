"""Builds and runs the load program; the binary is kept outside the repository, named after its source."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "benchmarks" / "load" / "load.c"
INCLUDED = ROOT / "src" / "cometmq" / "native" / "sha1.h"
COMPILER_FLAGS = ("-O2", "-std=gnu11")
# The program ends by itself this long after its `--seconds` at the latest; see GRACE_SECONDS there.
GRACE_SECONDS = 60


class LoadFailed(Exception):
    """A broker answered wrongly or not at all; the message holds what the load program saw."""


class NoCompiler(Exception):
    """There is nothing here that compiles C."""


class LoadProgram:
    """Runs one load after the other."""

    def __init__(self, binary: Path) -> None:
        self._binary = binary

    def run(self, mode: str, arguments: Sequence[str], *, seconds: float) -> dict[str, Any]:
        """One load; returns the figures. Raises ``LoadFailed`` when any reply was wrong."""
        command = [str(self._binary), mode, *arguments, "--seconds", str(seconds)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds + GRACE_SECONDS, check=False
        )
        if done.returncode != 0:
            told = (done.stderr + done.stdout).strip()
            raise LoadFailed(f"{' '.join(command[1:])}: exit code {done.returncode}: {told}")
        result: dict[str, Any] = json.loads(done.stdout)
        return result


def build(source: Path = SOURCE) -> LoadProgram:
    """The compiled program, made now when this source was not compiled before."""
    root = Path(os.environ.get("COMETMQ_CACHE") or Path.home() / ".cache" / "cometmq") / "bench"
    digest = hashlib.sha256(
        " ".join(COMPILER_FLAGS).encode() + source.read_bytes() + INCLUDED.read_bytes()
    ).hexdigest()
    binary = root / f"load-{digest[:16]}"
    if not binary.exists():
        root.mkdir(parents=True, exist_ok=True)
        _compile(source, binary)
    return LoadProgram(binary)


def _compile(source: Path, binary: Path) -> None:
    compiler = os.environ.get("CC") or "cc"
    if shutil.which(compiler) is None:
        raise NoCompiler(
            f"the load program is written in C and {compiler!r} is not on the path; "
            "install a C compiler (Debian: apt-get install gcc libc6-dev) or name one in CC"
        )
    # It appears by one rename: a half-written binary never looks like a finished one.
    with tempfile.TemporaryDirectory(dir=binary.parent) as scratch:
        made = Path(scratch) / "load"
        done = subprocess.run(
            [compiler, *COMPILER_FLAGS, "-o", str(made), str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NoCompiler(f"{compiler} could not compile {source.name}:\n{done.stderr.strip()}")
        made.rename(binary)
