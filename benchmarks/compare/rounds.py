"""Runs the cases: brokers of one set-up stay up, rounds alternate between the systems, one is loaded at a time."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.compare.cases import (
    BACKLOG_MESSAGES,
    BACKLOG_QUEUES,
    BACKLOG_TOPIC,
    FILTERS,
    MANY_TOPIC,
    MANY_TOPICS,
    MARKED_TOPIC,
    OURS,
    PEAK_CASE,
    PULLED_MESSAGES,
    SIDE_BY_SIDE,
    Case,
    Pace,
    Setup,
    is_judged,
)
from benchmarks.compare.load import LoadFailed, LoadProgram
from benchmarks.compare.outcome import Outcome, Plan, Row
from benchmarks.compare.stolen import least_disturbed, processor_times
from benchmarks.compare.systems import BROKER_NAME, Commands, System, running

FILL_SECONDS_MAX = 300
FILL_TRIES_MAX = 10
# For ours: open the files, fill the caches. Java's compiler needs far more and gets `warm_seconds`.
OUR_WARM_SECONDS = 3.0
# Whoever slept has timers to catch up with, and ten thousand topics to tell its name server of: before each round.
SETTLE_SECONDS = 0.7
MANY_TOPICS_FLAGS = (
    *("--topic", MANY_TOPIC, "--topics", str(MANY_TOPICS), "--no-create"),
    *("--queues", "1", "--body", "128"),
)


def check_pulls(result: dict[str, Any]) -> None:
    """Raises LoadFailed when pulls brought less than they asked for: then something else was measured."""
    each = result["messages"] / result["requests"]
    if each < 0.9 * PULLED_MESSAGES:
        raise LoadFailed(f"{each:.1f} messages a pull, {PULLED_MESSAGES} were asked for")


def _topic_of(arguments: Sequence[str]) -> str:
    return arguments[arguments.index("--topic") + 1]


class Runner:
    """Holds what all rounds share."""

    def __init__(
        self,
        plan: Plan,
        program: LoadProgram,
        commands: dict[str, Commands],
        scratch: Path,
        say: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._program = program
        self._commands = commands
        self._scratch = scratch
        self._say = say
        self._numbers = itertools.count()
        self.outcome = Outcome()

    def run(self) -> Outcome:
        self._start_ups()
        for setups in SIDE_BY_SIDE:
            cases = [case for case in self._plan.cases if case.setup in setups]
            if cases:
                self._run_setups(cases)
        return self.outcome

    def _start_ups(self) -> None:
        """Start-up and idle memory; the brokers of the real rounds start once more, for themselves."""
        for number in range(self._plan.rounds):
            for name in self._order(number):
                with self._running(name, Setup.ASYNC) as system:
                    self._say(f"{name} accepted a send after {system.start_seconds:.2f} s")
                    self._add_start(system)

    def _add_start(self, system: System) -> None:
        row = Row("start-up", "start of the broker to the first accepted send", "s", True)
        self.outcome.add(system.name, system.start_seconds, row)
        memory = system.memory_mb()
        total = memory["name_server"] + memory["broker"]
        row = Row("memory-idle", "resident memory, name server and broker, idle", "MB", True)
        self.outcome.add(system.name, total, row)

    def _run_setups(self, cases: list[Case]) -> None:
        setups = list(dict.fromkeys(case.setup for case in cases))
        # Memory for the brokers of three set-ups at a time is there for two systems, not for three.
        names = self._plan.systems if len(setups) == 1 else self._plan.judged_systems
        with contextlib.ExitStack() as stack:
            systems = {
                (name, setup): stack.enter_context(self._running(name, setup))
                for setup in setups
                for name in names
            }
            for system in systems.values():
                # A process that sleeps does not end when it is asked to.
                stack.callback(system.resume)
                system.pause()
            for (_, setup), system in systems.items():
                with system.awake():
                    self._warm_up(system, setup)
            for number, case in self._turns(cases):
                for name in self._order(number):
                    if (name, case.setup) in systems:
                        with systems[name, case.setup].awake():
                            self._round(systems[name, case.setup], case)
            if setups == [Setup.ASYNC]:
                self._add_memory_after(systems.values())

    def _turns(self, cases: list[Case]) -> list[tuple[int, Case]]:
        """Number of the round, and the case. Cases that are compared with each other take turns; others have all of
        their rounds in a row, because the pace of some comes from the figures of one before."""
        turns = [(number, case) for case in cases for number in range(self._plan.rounds_of(case))]
        in_a_row = (Setup.ASYNC, Setup.BATCHES, Setup.PACED, Setup.SYNC)
        takes_turns = cases[0].setup not in in_a_row
        return sorted(turns, key=lambda turn: turn[0]) if takes_turns else turns

    def _add_memory_after(self, systems: Iterable[System]) -> None:
        for system in systems:
            memory = system.memory_mb()
            row = Row("memory-loaded", "resident memory of the broker after the load", "MB", True)
            self.outcome.add(system.name, memory["broker"], row)
            row = Row("memory-loaded anonymous", "the same without mapped files", "MB", True)
            self.outcome.add(system.name, memory["broker_anonymous"], row)

    def _order(self, number: int) -> list[str]:
        """The systems, beginning with another one each round."""
        systems = self._plan.systems_in(number)
        turn = number % len(systems)
        return systems[turn:] + systems[:turn]

    def _running(self, name: str, setup: Setup) -> contextlib.AbstractContextManager[System]:
        directory = self._scratch / f"{next(self._numbers)}-{name}-{setup}"
        return running(name, self._commands[name], setup, directory, self._program)

    def _round(self, system: System, case: Case) -> None:
        try:
            if case.mode == "pull":
                self._ensure_backlog(system, _topic_of(case.arguments))
            arguments = (*case.arguments, *self._pace(system, case))
            if "--topic" not in arguments:
                arguments = (*arguments, "--topic", case.name)
            self._load(system, case.mode, arguments, SETTLE_SECONDS)
            result = self._measure(system, case, arguments)
            if case.mode == "pull":
                check_pulls(result)
        except LoadFailed as error:
            self.outcome.failures.append(f"{system.name}, {case.name}: {error}")
            self._say(f"  FAILED {self.outcome.failures[-1]}")
            return
        self.outcome.details.append({"case": case.name, "system": system.name} | result)
        for metric in case.metrics:
            name, title = case.row_name(metric), case.row_title(metric)
            row = Row(name, title, metric.unit, metric.lower_is_better)
            self.outcome.add(system.name, metric.of(result), row, result["stolen_share"])
        figures = ", ".join(f"{metric.of(result):,.0f} {metric.unit}" for metric in case.metrics)
        busy = f", {result['busy']:,} refused as busy" if result["busy"] else ""
        stolen = f", {result['stolen_share']:.0%} of the machine taken by its host"
        self._say(f"  {case.name:16} {system.name:15} {figures}{busy}{stolen}")

    def _measure(self, system: System, case: Case, arguments: Sequence[str]) -> dict[str, Any]:
        def run() -> dict[str, Any]:
            return self._load(system, case.mode, arguments, self._plan.seconds)

        # Only where something is judged: a round costs time, and space on the disk.
        return least_disturbed(run) if is_judged(case) else run()

    def _load(
        self, system: System, mode: str, arguments: Sequence[str], seconds: float
    ) -> dict[str, Any]:
        """One load. RocketMQ's flow control may answer "busy": such replies are counted apart, never as messages."""
        target = ("--address", system.address, "--broker", BROKER_NAME, "--busy-ok")
        before, times_before = system.broker_cpu_seconds(), processor_times()
        result = self._program.run(mode, (*target, *system.flags, *arguments), seconds=seconds)
        result["broker_cpu_seconds"] = round(system.broker_cpu_seconds() - before, 3)
        share = processor_times().stolen_share_since(times_before)
        result["stolen_share"] = round(share, 4)
        return result

    def _pace(self, system: System, case: Case) -> tuple[str, ...]:
        if case.pace is None:
            return ()
        if case.pace is Pace.QUARTER_OF_OURS:
            name = OURS if OURS in self._plan.systems else self._plan.systems[0]
            rate = self._peak(name) / 4
        else:
            rate = self._peak(system.name) / 2
        return ("--rate", str(max(1, int(rate))))

    def _peak(self, system: str) -> float:
        row = self.outcome.rows.get(PEAK_CASE)
        peak = row.median(system) if row else None
        if peak is None:
            raise LoadFailed(f"its rate comes from {PEAK_CASE}, which has no figure of {system}")
        return peak

    def _ensure_backlog(self, system: System, topic: str) -> None:
        marks = ("--marked",) if topic == MARKED_TOPIC else ()
        if topic in system.backlogs:
            return
        target = ("--topic", topic, "--queues", str(BACKLOG_QUEUES), *marks)
        missing = BACKLOG_MESSAGES
        for _ in range(FILL_TRIES_MAX):
            # Few in flight: RocketMQ refuses some as busy, and each of those has to be sent once more.
            load = (*target, "--in-flight", "16", "--count", str(missing))
            missing -= self._load(system, "send", load, FILL_SECONDS_MAX)["messages"]
            if not missing:
                system.backlogs.add(topic)
                return
        raise LoadFailed(f"{missing} of {BACKLOG_MESSAGES} messages refused {FILL_TRIES_MAX} times")

    def _warm_up(self, system: System, setup: Setup) -> None:
        """Every path that will be measured, for the given time in all. Small bodies, to spare the disk."""
        seconds = OUR_WARM_SECONDS if system.name == OURS else self._plan.warm_seconds
        self._say(f"{system.name}: warming up for {seconds:.0f} s ({setup})")
        try:
            if setup is Setup.TOPICS:
                self._touch_all_topics(system)
            for mode, share, arguments in self._warm_steps(setup):
                if mode == "pull":
                    self._ensure_backlog(system, _topic_of(arguments))
                self._load(system, mode, arguments, seconds * share)
        except LoadFailed as error:
            self.outcome.failures.append(f"{system.name}, warming up: {error}")
            self._say(f"  FAILED {self.outcome.failures[-1]}")

    def _touch_all_topics(self, system: System) -> None:
        """The first message of a queue makes its files: a cost of its own, and no part of the rounds."""
        count = ("--count", str(2 * MANY_TOPICS), "--in-flight", "16")
        self._load(system, "send", (*MANY_TOPICS_FLAGS, *count), FILL_SECONDS_MAX)

    def _warm_steps(self, setup: Setup) -> Iterable[tuple[str, float, tuple[str, ...]]]:
        if setup is Setup.TOPICS:
            yield "send", 1.0, MANY_TOPICS_FLAGS
            return
        small = ("--topic", "Warm", "--body", "128")
        modes = {case.mode for case in self._plan.cases if case.setup is setup}
        others = len(modes - {"send"})
        yield "send", 0.7 - 0.2 * others, (*small, "--in-flight", "64")
        yield "send", 0.2, (*small, "--connections", "64", "--in-flight", "1")
        yield "send", 0.1, (*small, "--in-flight", "4", "--batch", "32")
        if "pull" in modes:
            queues = ("--queues", str(BACKLOG_QUEUES))
            kinds = dict.fromkeys(
                flag
                for case in self._plan.cases
                for flag in case.arguments
                if case.setup is setup and flag in FILTERS
            )
            share = 0.2 / (1 + len(kinds))
            yield "pull", share, ("--topic", BACKLOG_TOPIC, *queues)
            for kind in kinds:
                yield "pull", share, ("--topic", MARKED_TOPIC, *queues, "--filter", kind)
        if "latency" in modes:
            yield "latency", 0.2, ("--topic", "WarmLatency", "--body", "128", "--rate", "2000")
