"""What many groups cost one controller: steady, and when a third of them lose their masters at once.

    python benchmarks/many_groups.py [--groups 100] [--replicas 3] [--seconds 20] [--directory DIR]

The controller is a real process with its file. The brokers are played by this process, with a connection and a port
each: they apply for an id, register, stand for election and join the set that their master proposes. Every second they
send a heartbeat, and every 3.3 s they ask who is the master, as our brokers do by default. ``steady`` is the processor
time of the controller meanwhile. Then the masters of a third of the groups close their connections. The time runs until
the controller has told the last of their successors that it is the master, on its own question after the notice.

Writes ``results/many_groups.json``, unless there are fewer groups or replicas than by default.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]

from benchmarks.catch_up import cpu_of  # noqa: E402
from benchmarks.compare.stolen import processor_times  # noqa: E402
from benchmarks.parts.goals import Goal, show_goals  # noqa: E402
from benchmarks.parts.played_broker import PlayedBroker  # noqa: E402
from benchmarks.parts.waiting import until  # noqa: E402
from tests.interop.controllers import Controller  # noqa: E402
from tests.interop.servers import cometmq_commands  # noqa: E402
from tests.interop.systems import OURS  # noqa: E402

from cometmq.remoting.new_loop import new_event_loop  # noqa: E402

RESULT: Final = HERE / "results" / "many_groups.json"
GROUPS, REPLICAS, SECONDS = 100, 3, 20.0
SHARE_MAX: Final = 0.10
ELECTED_SECONDS_MAX: Final = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--groups", type=int, default=GROUPS)
    parser.add_argument("--replicas", type=int, default=REPLICAS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of the steady state")
    parser.add_argument("--directory", type=Path, help="where the decisions go while it runs")
    sizes = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="cometmq-groups-", dir=sizes.directory) as made,
        asyncio.Runner(loop_factory=new_event_loop) as runner,
    ):
        figures = runner.run(measure(Path(made), sizes))
    show_goals(figures["goals"])
    if (sizes.groups, sizes.replicas) >= (GROUPS, REPLICAS) and sizes.seconds >= SECONDS:
        RESULT.write_text(json.dumps(figures, indent=1) + "\n")
        print(f"written: {RESULT.relative_to(HERE.parent)}", file=sys.stderr)
    return 0


async def measure(directory: Path, sizes: argparse.Namespace) -> dict[str, Any]:
    times = processor_times()
    with Controller(OURS, cometmq_commands(), directory / "controller").running() as controller:
        groups: list[list[PlayedBroker]] = [[] for _ in range(sizes.groups)]
        begin = time.monotonic()
        for number, brokers in enumerate(groups):
            for _ in range(sizes.replicas):
                brokers.append(PlayedBroker(controller.address, f"group-{number:03}", brokers))
                await brokers[-1].start()
        await until(lambda: all(is_complete(one) for one in groups), "all sets complete")
        joined_seconds = time.monotonic() - begin
        share = await steady_share(controller.pid, sizes.seconds)
        seconds = await strike(random.sample(groups, -(-sizes.groups // 3)))
        for broker in itertools.chain(*groups):
            await broker.stop()
    figures: dict[str, Any] = {
        "cores": os.cpu_count(),
        "python": sys.version.split()[0],
        "groups": sizes.groups,
        "replicas": sizes.replicas,
        "joined_seconds": round(joined_seconds, 2),
        "steady_share": round(share, 4),
        "elections": len(seconds),
        "median_seconds": round(statistics.median(seconds), 3),
        "all_seconds": round(max(seconds), 3),
        "stolen_share": round(processor_times().stolen_share_since(times), 4),
    }
    return {**figures, "goals": goals(figures)}


def is_complete(group: list[PlayedBroker]) -> bool:
    """Whether one of those that live is the master, and all of them are in its set."""
    living = {broker.id for broker in group if broker.is_alive}
    return any(broker.is_master and broker.view.members == living for broker in group)


async def steady_share(pid: int, seconds: float) -> float:
    """Processor time of the controller by the second."""
    begin, used = time.monotonic(), cpu_of(pid)
    await asyncio.sleep(seconds)
    return (cpu_of(pid) - used) / (time.monotonic() - begin)


async def strike(groups: list[list[PlayedBroker]]) -> list[float]:
    """Close the connections of these groups' masters; the seconds until each has another."""
    masters = [next(broker for broker in group if broker.is_master) for group in groups]
    begin = time.monotonic()
    await asyncio.gather(*(master.stop() for master in masters))
    await until(lambda: all(is_complete(group) for group in groups), "all sets complete again")
    return [
        next(broker.elected_at for broker in group if broker.is_master) - begin for group in groups
    ]


def goals(figures: dict[str, Any]) -> list[Goal]:
    share, seconds = figures["steady_share"], figures["all_seconds"]
    return [
        {
            "what": f"{figures['groups']} groups of {figures['replicas']} brokers: steady cost of the controller",
            "goal": f"< {SHARE_MAX:.0%} of a core",
            "measured": f"{share:.1%}",
            "met": share < SHARE_MAX,
        },
        {
            "what": f"{figures['elections']} of their masters gone at once: all groups have another",
            "goal": f"< {ELECTED_SECONDS_MAX:g} s",
            "measured": f"{seconds:.2f} s, median {figures['median_seconds']:.2f}",
            "met": seconds < ELECTED_SECONDS_MAX,
        },
    ]


if __name__ == "__main__":
    sys.exit(main())
