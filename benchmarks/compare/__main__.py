"""CometMQ beside RocketMQ 4.9.7 and 5.5.0: same machine, same load program, rounds in turn, medians.

    python -m benchmarks.compare             everything: about an hour, 75 GB of disk on the way
    python -m benchmarks.compare --quick     a first impression: one short round against RocketMQ 4.9.7 alone
    python -m benchmarks.compare --cases 'send-1k-*' 'latency-*' --systems cometmq rocketmq-4.9.7

Prints a table and writes `benchmarks/results/compare.json` and `compare.svg` (with --quick: `compare-quick.*`). With
--cases the rows of other cases stay there as they were: figures of one row are always of one run. Exit code 1: a broker
answered wrongly; 3: a component is missing. A missed goal is told in the table, not by the exit code.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.compare import picture, report
from benchmarks.compare.cases import OURS, RIVAL, SIDE_BY_SIDE, SYSTEMS, Setup, all_cases, chosen
from benchmarks.compare.load import LoadProgram, NoCompiler, build
from benchmarks.compare.outcome import Outcome, Plan
from benchmarks.compare.rounds import Runner
from benchmarks.compare.systems import commands_of
from tests.interop.java import MissingComponent

RESULTS = Path(__file__).parent.parent / "results"
EXIT_WRONG, EXIT_MISSING = 1, 3
# What a second of a round of the fast cases writes; the stores of one set-up live together.
DISK_BYTES_PER_SECOND = 500 << 20
# How much less a broker of RocketMQ writes.
RIVALS_PART = 4


def main() -> int:
    arguments = _parse()
    plan = _plan(arguments)
    try:
        program = build()
        limits = _limits(program)
        outcome = _measure(plan, program, arguments.directory)
    except (MissingComponent, NoCompiler) as error:
        print(f"benchmark cannot run: {error}", file=sys.stderr)
        return EXIT_MISSING
    name = "compare-quick" if arguments.quick else "compare"
    kept = RESULTS / f"{name}.json"
    if arguments.cases and kept.exists():
        newer, outcome = outcome, report.from_json(json.loads(kept.read_text(encoding="utf-8")))
        outcome.take_over(newer)
    _publish(outcome, plan, limits, name)
    return EXIT_WRONG if outcome.failures else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare")
    parser.add_argument("--quick", action="store_true", help="one short round, RocketMQ 4.9.7 only")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS)
    parser.add_argument("--cases", nargs="+", default=[], help="names or shell patterns")
    parser.add_argument(
        "--rounds",
        type=int,
        help="rounds of each case (3; quick: 1); thrice that for those with a goal",
    )
    parser.add_argument("--seconds", type=float, help="length of a round (2)")
    parser.add_argument("--warm-seconds", type=float, help="load before, for Java (60; quick: 12)")
    parser.add_argument("--directory", type=Path, help="where the stores go while it runs")
    parser.add_argument("--list", action="store_true", help="show the cases and end")
    arguments = parser.parse_args()
    if arguments.list:
        for case in all_cases():
            print(f"{case.name:16} {case.title}")
        raise SystemExit(0)
    return arguments


def _plan(arguments: argparse.Namespace) -> Plan:
    quick = arguments.quick
    cases = chosen(all_cases(), arguments.cases, quick=quick)
    if not cases:
        raise SystemExit(f"no case matches {arguments.cases}; --list shows them")
    return Plan(
        systems=arguments.systems or ((OURS, RIVAL) if quick else SYSTEMS),
        cases=cases,
        rounds=arguments.rounds or (1 if quick else 3),
        seconds=arguments.seconds or 2.0,
        warm_seconds=arguments.warm_seconds or (12.0 if quick else 60.0),
    )


def _limits(program: LoadProgram) -> dict[str, Any]:
    """How fast the load program goes when the other side answers from a can."""
    wanted = {
        "send 1 KB, 4 x 64": ("send", ()),
        "send 1 KB, 64 x 1": ("send", ("--connections", "64", "--in-flight", "1")),
        "pull 1 KB, 1 connection": ("pull", ("--connections", "1", "--queues", "1")),
        "pull 1 KB, 1 connection that never sleeps": (
            "pull",
            ("--connections", "1", "--queues", "1", "--awake"),
        ),
    }
    limits = {}
    for name, (mode, flags) in wanted.items():
        result = program.run(mode, ("--echo", *flags), seconds=1)
        cpu_us = result["cpu_seconds"] / result["messages"] * 1e6
        limits[name] = {"per_second": result["per_second"], "cpu_us_per_message": round(cpu_us, 3)}
        _say(f"load program against canned replies, {name}: {result['per_second']:,}/s")
    return limits


def _measure(plan: Plan, program: LoadProgram, directory: Path | None) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="cometmq-bench-", dir=directory) as scratch:
        _check_disk(plan, Path(scratch))
        commands = {system: commands_of(system, Path(scratch)) for system in plan.systems}
        return Runner(plan, program, commands, Path(scratch), _say).run()


def _check_disk(plan: Plan, scratch: Path) -> None:
    needed = max(_disk_bytes(plan, setups) for setups in SIDE_BY_SIDE)
    free = shutil.disk_usage(scratch).free
    if free < needed:
        raise MissingComponent(
            f"about {needed >> 30} GB of disk are needed and {scratch.parent} has {free >> 30} GB free; "
            "choose another place with --directory, or fewer --cases, --rounds or --seconds"
        )


def _disk_bytes(plan: Plan, setups: Sequence[Setup]) -> int:
    """What the stores of set-ups that are up at the same time may take."""
    needed = 0
    for setup in setups:
        writing = [case for case in plan.cases if case.setup is setup and case.mode != "pull"]
        rounds = sum(plan.rounds_of(case) for case in writing)
        if rounds:
            seconds = rounds * plan.seconds + plan.warm_seconds / 4
            # The half: most cases write far less than the fastest one. The rest is for the log's files of 1 GB: one is
            # begun, one is made ahead of time.
            store = int(seconds * DISK_BYTES_PER_SECOND / 2) + (2 << 30)
            needed += store * (2 if setup.has_slave else 1)
    names = plan.systems if len(setups) == 1 else plan.judged_systems
    return sum(needed if name == OURS else needed // RIVALS_PART for name in names)


def _publish(outcome: Outcome, plan: Plan, limits: dict[str, Any], name: str) -> None:
    print(f"\n{report.table(outcome, plan.systems)}\n")
    for note in outcome.busy_notes():
        print(f"BUSY {note}")
    for failure in outcome.failures:
        print(f"FAILED {failure}")
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(report.as_json(outcome, plan, limits), indent=1)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    drawing = picture.svg(outcome.rows.values(), plan.systems)
    (RESULTS / f"{name}.svg").write_text(drawing, encoding="utf-8")
    print(f"written: {RESULTS / name}.json and .svg")


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
