"""How soon sends go on when the master under a controller is killed or replaced, and whether anything is lost.

    python benchmarks/elections.py [--kills 50] [--java-kills 10] [--switches 20] [--topics 10000] [--directory DIR]

Real processes: a name server, a controller with its file, and three brokers of one group with ASYNC_FLUSH, whose sends
are answered when all of the SyncStateSet have the record. In this process 32 senders send so many 1 KB messages a
second with our client, in all cases.

``kills``: the master is killed with SIGKILL, again and again. The time runs from the kill to the first SEND_OK of
another broker. Then it is started again; when it is back in the SyncStateSet, the logs of all three are compared as far
as they reach, and the next kill follows. RocketMQ 5.5.0's controller and brokers take turns with ours.

``switches``: an operator has another broker elected (electMaster). No send may fail. The latency of a send counts from
the moment when it was due, for all that were due between the request and a second later.

``topics``: the same with so many topics; the time runs from the request to the first SEND_OK of the new master.

In the end every message that was answered with SEND_OK is looked for at the master. If ours miss one or their logs
differ, the exit code is 1. Writes ``results/elections.json``, unless something is less than by default.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]

from benchmarks.compare.stolen import processor_times  # noqa: E402
from benchmarks.parts.goals import Goal, show_goals  # noqa: E402
from benchmarks.parts.many_topics import make_topics  # noqa: E402
from benchmarks.parts.role_changes import Switch, Trial, trial  # noqa: E402
from tests.interop.java import MissingComponent  # noqa: E402
from tests.interop.systems import OURS, ROCKETMQ_5  # noqa: E402

from cometmq.remoting.new_loop import new_event_loop  # noqa: E402

RESULT: Final = HERE / "results" / "elections.json"
SIZES: Final = {"kills": 50, "java_kills": 10, "switches": 20, "topics": 10_000}
TOPIC_SWITCHES: Final = 5
TURNS: Final = 5
MEDIAN_SECONDS, WORST_SECONDS, BEHIND_JAVA_SECONDS = 3.0, 10.0, 0.1
SWITCH_P99_MS: Final = 500.0
TOPICS_SECONDS: Final = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, size in SIZES.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=size)
    parser.add_argument("--rate", type=int, default=1000, help="messages a second")
    parser.add_argument("--directory", type=Path, help="where the stores go while it runs")
    parser.add_argument("--verbose", action="store_true", help="show what the clients log")
    arguments = parser.parse_args()
    # Every kill breaks connections, which is what is wanted here.
    logging.basicConfig(level=logging.INFO if arguments.verbose else logging.CRITICAL)
    with (
        tempfile.TemporaryDirectory(prefix="cometmq-elections-", dir=arguments.directory) as made,
        asyncio.Runner(loop_factory=new_event_loop) as runner,
    ):
        try:
            figures = runner.run(measure(Path(made), arguments))
        except MissingComponent as error:
            print(error)
            return 3
    show_goals(figures["goals"])
    if all(getattr(arguments, name) >= size for name, size in SIZES.items()):
        RESULT.write_text(json.dumps(figures, indent=1) + "\n")
        print(f"written: {RESULT.relative_to(HERE.parent)}", file=sys.stderr)
    ours = [figures[part] for part in (OURS, "switches", "topics") if part in figures]
    return 1 if any(part["lost"] or part["diverged"] for part in ours) else 0


async def measure(directory: Path, sizes: argparse.Namespace) -> dict[str, Any]:
    """Parts of no size are left out."""
    times, rate = processor_times(), sizes.rate
    figures: dict[str, Any] = {
        "cores": os.cpu_count(),
        "python": sys.version.split()[0],
        "rate": rate,
    }
    if sizes.kills:
        figures |= await killed(directory / "kills", sizes)
    if sizes.switches:
        async with trial(OURS, directory / "switches", rate) as one:
            figures["switches"] = await switched(one, sizes.switches)
    if sizes.topics:
        async with trial(OURS, directory / "topics", rate) as one:
            await make_topics(one.group, sizes.topics)
            figures["topics"] = {"topics": sizes.topics, **await switched(one, TOPIC_SWITCHES)}
    figures["stolen_share"] = round(processor_times().stolen_share_since(times), 4)
    return {**figures, "goals": goals(figures)}


async def killed(directory: Path, sizes: argparse.Namespace) -> dict[str, Any]:
    """The figures of each make. Both are up all the time; one is sent to."""
    counts = {OURS: sizes.kills, ROCKETMQ_5: sizes.java_kills}
    async with contextlib.AsyncExitStack() as stack:
        trials = {
            make: await stack.enter_async_context(trial(make, directory / make, sizes.rate))
            for make, kills in counts.items()
            if kills
        }
        seconds: dict[str, list[float]] = {make: [] for make in trials}
        loads: dict[str, list[float]] = {make: [] for make in trials}
        for turn in range(TURNS):
            for make, one in trials.items():
                kills = counts[make]
                async with one.load():
                    for number in range(kills * turn // TURNS, kills * (turn + 1) // TURNS):
                        await asyncio.sleep(random.uniform(0.0, 1.0))
                        loads[make].append(load_average())
                        seconds[make].append(await one.kill())
                        print(f"{make} kill {number + 1:3}: {seconds[make][-1]:6.3f} s", flush=True)
        return {
            make: {
                "kills": len(seconds[make]),
                "median_seconds": round(statistics.median(seconds[make]), 3),
                "worst_seconds": round(max(seconds[make]), 3),
                "seconds": [round(one, 3) for one in seconds[make]],
                "load_averages": loads[make],
                **await outcome(one),
            }
            for make, one in trials.items()
        }


async def switched(one: Trial, count: int) -> dict[str, Any]:
    found: list[Switch] = []
    loads: list[float] = []
    async with one.load():
        for number in range(count):
            await asyncio.sleep(random.uniform(0.0, 1.0))
            loads.append(load_average())
            found.append(await one.switch())
            print(
                f"switch {number + 1:3}: {found[-1].seconds:6.3f} s, failed {found[-1].failed}, "
                f"slowest send {max(found[-1].latencies):.3f} s",
                flush=True,
            )
    latencies = sorted(latency for switch in found for latency in switch.latencies)
    return {
        "switches": count,
        "worst_seconds": round(max(switch.seconds for switch in found), 3),
        "seconds": [round(switch.seconds, 3) for switch in found],
        "load_averages": loads,
        "failed": sum(switch.failed for switch in found),
        "sends": len(latencies),
        "p50_ms": round(statistics.median(latencies) * 1000, 1),
        "p99_ms": round(latencies[len(latencies) * 99 // 100] * 1000, 1),
        "worst_ms": round(latencies[-1] * 1000, 1),
        **await outcome(one),
    }


async def outcome(one: Trial) -> dict[str, Any]:
    lost = await one.lost()
    return {
        "statuses": dict(one.answers.statuses),
        "last_error": one.answers.last_error,
        "acknowledged": len(one.answers.acknowledged),
        "lost": lost,
        "diverged": one.diverged,
    }


def load_average() -> float:
    """Of the last minute. Others may use the machine, and it is the first thing to look at when a figure is odd."""
    return round(os.getloadavg()[0], 1)


def goals(figures: dict[str, Any]) -> list[Goal]:
    found: list[Goal] = []

    def add(what: str, goal: str, measured: str, is_met: bool) -> None:
        found.append({"what": what, "goal": goal, "measured": measured, "met": is_met})

    ours, theirs = figures.get(OURS), figures.get(ROCKETMQ_5)
    if ours:
        what = f"master killed {ours['kills']} times at {figures['rate']:,} messages/s: "
        of = f"{ours['lost']} of {ours['acknowledged']:,} acknowledged"
        add(f"{what}lost", "0", of, ours["lost"] == 0)
        add("the same: logs that differ", "0", str(ours["diverged"]), ours["diverged"] == 0)
        median, worst = ours["median_seconds"], ours["worst_seconds"]
        what = "from the kill to the first SEND_OK"
        limit = f"≤ {MEDIAN_SECONDS:g} s"
        add(f"{what}, median", limit, f"{median:.2f} s", median <= MEDIAN_SECONDS)
        add(f"{what}, worst", f"≤ {WORST_SECONDS:g} s", f"{worst:.2f} s", worst <= WORST_SECONDS)
        if theirs:
            for name in ("median", "worst"):
                mine, other = ours[f"{name}_seconds"], theirs[f"{name}_seconds"]
                add(
                    f"the same beside {ROCKETMQ_5} ({theirs['kills']} kills), {name}",
                    f"≤ {other:.2f} + {BEHIND_JAVA_SECONDS:g} s",
                    f"{mine:.2f} s",
                    mine <= other + BEHIND_JAVA_SECONDS,
                )
    if switches := figures.get("switches"):
        what = f"master replaced {switches['switches']} times by an operator: "
        of = f"{switches['failed']} of {switches['sends']:,}"
        add(f"{what}failed sends", "0", of, switches["failed"] == 0)
        p99, worst = switches["p99_ms"], switches["worst_ms"]
        measured = f"{p99:.0f} ms, worst {worst:.0f}"
        add("latency of these sends, p99", f"< {SWITCH_P99_MS:g} ms", measured, p99 < SWITCH_P99_MS)
    if topics := figures.get("topics"):
        worst, what = topics["worst_seconds"], f"the same with {topics['topics']:,} topics: "
        measured = f"{worst:.2f} s, failed sends {topics['failed']}"
        what += "from the request to the first SEND_OK, worst"
        add(what, f"< {TOPICS_SECONDS:g} s", measured, worst < TOPICS_SECONDS)
    return found


if __name__ == "__main__":
    sys.exit(main())
