"""The programs around the Go and the Node client: built once, kept in the cache, run like the Java one."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from .java import RunningProgram, cached, require_tools, run_tool

BUILD_SECONDS_MAX = 900


class Program:
    """A client's program, ready to run. Each run has a directory of its own for what it writes."""

    def __init__(
        self, command: Sequence[str], runs: Path, environment: dict[str, str] | None = None
    ) -> None:
        self._command = command
        self._runs = runs
        self._environment = environment or {}

    def start(self, run: str, arguments: Iterable[str]) -> RunningProgram:
        """Starts the program; ``run`` names its directory, which it takes for its home."""
        home = self._runs / run
        home.mkdir(parents=True)
        environment = {**self._environment, "HOME": str(home)}
        return RunningProgram([*self._command, *arguments], home, environment)


def go_program(sources: Path, runs: Path) -> Program:
    """Compiles the Go program. Raises ``MissingComponent``."""
    require_tools(["go"])
    inputs = sorted([*sources.glob("*.go"), *sources.glob("go.*")])

    def fill(directory: Path) -> None:
        command = ["go", "build", "-o", str(directory / "interop"), "."]
        run_tool(command, seconds_max=BUILD_SECONDS_MAX, cwd=sources)

    return Program([str(cached("go", inputs, fill) / "interop")], runs)


def node_program(sources: Path, runs: Path) -> Program:
    """Installs the packages of the Node program. Raises ``MissingComponent``."""
    require_tools(["node", "npm"])
    inputs = sorted(sources.glob("package*.json"))

    def fill(directory: Path) -> None:
        for file in inputs:
            shutil.copy(file, directory)
        options = ["--ignore-scripts", "--no-audit", "--no-fund"]
        run_tool(["npm", "ci", *options], seconds_max=BUILD_SECONDS_MAX, cwd=directory)

    packages = cached("node", inputs, fill) / "node_modules"
    return Program(["node", str(sources / "main.js")], runs, {"NODE_PATH": str(packages)})
