"""What a program around a client has to say: one line for each scenario, ``ok NAME …`` or ``FAILED NAME reason``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from .java import RunningProgram
from .servers import ServerPair

RUN_SECONDS_MAX = 300
WAITING_SECONDS_MAX = 120
UNREGISTERED_SECONDS_MAX = 10

# A session fixture's work counts for the first test that asks for it, so the limit is that of a whole run.
TEST_SECONDS_MAX = RUN_SECONDS_MAX + WAITING_SECONDS_MAX


@dataclass(frozen=True)
class Report:
    """What one run of a program said: scenario name to None (ok) or the reason of its failure."""

    results: dict[str, str | None]
    ending: str
    errors: str

    def require_ok(self, name: str) -> None:
        if name not in self.results:
            pytest.fail(f"{name} was not reported; {self.ending}\n{self.errors}", pytrace=False)
        reason = self.results[name]
        if reason is not None:
            pytest.fail(f"{name}: {reason}\n{self.errors}", pytrace=False)


def finish(program: RunningProgram) -> Report:
    """Waits for the program's end and reads its report."""
    ended = program.wait(RUN_SECONDS_MAX)
    ending = (
        f"exit code {program.process.returncode}" if ended else f"killed after {RUN_SECONDS_MAX} s"
    )
    results: dict[str, str | None] = {}
    for line in program.lines():
        verdict, _, rest = line.partition(" ")
        name, _, reason = rest.partition(" ")
        if verdict in ("ok", "FAILED"):
            results[name] = reason if verdict == "FAILED" else None
    return Report(results, ending, program.errors())


@dataclass(frozen=True)
class RestartReport:
    """Two runs of a program around a restart of the broker."""

    before: Report
    after: Report
    was_unregistered: bool


def run_around_restart(
    servers: ServerPair, start: Callable[[str], RunningProgram]
) -> RestartReport:
    """Runs the modes ``before-restart`` and ``after-restart`` of a program with a restart of the broker between.

    The first prints ``waiting`` when the broker may go, and reads a line when it is back.
    """
    first = start("before-restart")
    deadline = time.monotonic() + WAITING_SECONDS_MAX
    while "waiting" not in first.lines() and first.process.poll() is None:
        if time.monotonic() > deadline:
            break  # Its report will lack a line, and say so.
        time.sleep(0.05)
    servers.stop_broker()
    was_unregistered = _is_unregistered(servers)
    servers.start_broker()
    first.go_on()
    # The first one may still wait for a pull that died with the old broker; the second has other groups.
    second = start("after-restart")
    return RestartReport(finish(first), finish(second), was_unregistered)


def _is_unregistered(servers: ServerPair) -> bool:
    deadline = time.monotonic() + UNREGISTERED_SECONDS_MAX
    while servers.has_route():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
