"""How long a master and its slaves are held up while the slaves take over its tables.

    python -m benchmarks.metadata_sync [--topics 10000] [--groups 1000] [--slaves 2] [--rounds 10]

One process for each broker, on loopback. Every topic has a group with offsets in four queues. The slaves begin with
empty tables (``first``), then ask again and again while nothing changes (``unchanged``), and while every offset and
one topic is another each time (``changing``). A task that wants to run every millisecond notes the longest time for
which it could not: by the clock, which includes whoever else uses the machine, and by the processor time of the loop's
own thread.

Goal: 20 ms at most. It is judged by the processor time, since three brokers share the cores of one machine here; the
clock's verdict is told, too. Writes ``results/metadata_sync.json``, unless there are fewer topics or slaves than by
default.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.compare.stolen import processor_times

from cometmq.base.clock import SystemClock
from cometmq.base.disk import SystemFiles
from cometmq.broker.config.broker_config import BrokerConfig, load_broker_config
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.core import open_core
from cometmq.broker.replication.metadata_sync import MetadataSync
from cometmq.broker.rooms import Rooms
from cometmq.broker.server import Broker
from cometmq.broker.table_saver import TableSaver, freshened
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.topic import TopicConfig
from cometmq.monitor.event_loop import run, settle
from cometmq.remoting.client import RemotingClient

RESULT: Final = Path(__file__).parent / "results" / "metadata_sync.json"
GOAL_MS: Final = 20.0
TOPICS: Final = 10_000
SLAVES: Final = 2
QUEUES: Final = 4
COMMITS_AT_ONCE: Final = 200
PAUSE_SECONDS: Final = 0.3


class Sizes(NamedTuple):
    topics: int
    groups: int
    rounds: int


class Stalls:
    """The longest times for which the event loop was busy with one thing, in milliseconds."""

    def __init__(self) -> None:
        self.wall_ms = self.cpu_ms = 0.0
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            wall, cpu = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.001)
            self.wall_ms = max(self.wall_ms, (time.perf_counter() - wall) * 1000 - 1)
            self.cpu_ms = max(self.cpu_ms, (time.thread_time() - cpu) * 1000)

    def take(self) -> tuple[float, float]:
        taken = self.wall_ms, self.cpu_ms
        self.wall_ms = self.cpu_ms = 0.0
        return taken


def settings(directory: str, **more: str) -> BrokerConfig:
    config, _ = load_broker_config(
        {
            "brokerName": "bench",
            "brokerIP1": "127.0.0.1",
            "bindAddress": "127.0.0.1",
            "listenPort": "0",
            "storePathRootDir": directory,
            "mappedFileSizeCommitLog": str(1 << 20),
            **more,
        }
    )
    return config


async def be_master(pipe: Connection, directory: str, sizes: Sizes) -> None:
    """Says its port, then does what it is told, and says how long it was held up."""
    broker = Broker(settings(directory))
    await broker.start()
    core = broker.core
    core.topics.put_many(
        TopicConfig(topic_name=f"topic-{number:06}", attributes={"message.type": "NORMAL"})
        for number in range(sizes.topics)
    )
    core.groups.put_many(
        SubscriptionGroupConfig(group_name=f"group-{number:06}") for number in range(sizes.groups)
    )
    commit_all(broker, sizes, 1000)
    await asyncio.sleep(PAUSE_SECONDS)
    for table in (core.topics, core.groups, core.offsets):
        await freshened(table)
    settle()
    pipe.send(broker.port)
    stalls = Stalls()
    loop = asyncio.get_running_loop()
    offset = 1000
    while (told := await loop.run_in_executor(None, pipe.recv)) != "stop":
        if told == "change":
            offset += 1
            core.topics.put(TopicConfig(topic_name="topic-000000", read_queue_nums=offset % 60))
            for first in range(0, sizes.topics, COMMITS_AT_ONCE):
                commit_all(broker, sizes, offset, first, COMMITS_AT_ONCE)
                await asyncio.sleep(0)
        pipe.send(stalls.take())
    await broker.stop()


def commit_all(
    broker: Broker, sizes: Sizes, offset: int, first: int = 0, count: int = 1 << 30
) -> None:
    for number in range(first, min(first + count, sizes.topics)):
        for queue_id in range(QUEUES):
            group = f"group-{number % sizes.groups:06}"
            broker.core.offsets.commit(group, f"topic-{number:06}", queue_id, offset)


async def be_slave(pipe: Connection, directory: str, port: int) -> None:
    """Syncs when it is told to; says how long that took and how long it was held up."""
    files, clock = SystemFiles(), SystemClock()
    live = LiveConfig(
        settings(directory, brokerRole="SLAVE", brokerId="1"), clock=clock, files=files
    )
    loop = asyncio.get_running_loop()
    core = open_core(live, clock=clock, files=files, loop=loop, port=port + 100)
    saver = TableSaver((core.topics, core.groups, core.filters, core.modes))

    async def nothing(_: object) -> list[object]:
        return []

    rooms = Rooms(core, saved=saver.saved, announce=nothing, queues_of=nothing)  # type: ignore[arg-type]
    saver.start()
    client = RemotingClient()
    sync = MetadataSync(core=core, delays=rooms.schedule, timers=rooms.timer.timed, client=client)
    sync.follow(f"127.0.0.1:{port}")
    settle()
    pipe.send("ready")
    stalls = Stalls()
    while await loop.run_in_executor(None, pipe.recv) != "stop":
        stalls.take()
        begin = time.perf_counter()
        await sync.sync_now()
        seconds = time.perf_counter() - begin
        # As ``Housekeeping`` does every few seconds.
        await freshened(core.offsets)
        if (write := core.offsets.unsaved()) is not None:
            await asyncio.to_thread(write)
        await saver.saved()
        pipe.send((seconds, *stalls.take(), len(core.topics)))
    await sync.stop()
    await saver.stop()
    await client.close()
    core.store.close()


def run_master(pipe: Connection, directory: str, sizes: Sizes) -> None:
    run(be_master(pipe, directory, sizes))


def run_slave(pipe: Connection, directory: str, port: int) -> None:
    run(be_slave(pipe, directory, port))


def measure(sizes: Sizes, slave_count: int) -> dict[str, dict[str, float]]:
    """The figures of each phase."""
    figures: dict[str, dict[str, float]] = {}
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as directory:
        master, other = context.Pipe()
        processes = [context.Process(target=run_master, args=(other, f"{directory}/master", sizes))]
        processes[0].start()
        port = master.recv()
        slaves = []
        for number in range(slave_count):
            slave, other = context.Pipe()
            path = str(Path(directory) / f"slave{number}")
            processes.append(context.Process(target=run_slave, args=(other, path, port)))
            processes[-1].start()
            slaves.append(slave)
        for slave in slaves:
            slave.recv()
        print(f"{sizes.topics} topics, {sizes.groups} groups, {slave_count} slaves")
        print("phase      round ms   longest stall, ms: master   its cpu   slave   its cpu")
        for phase, rounds in (
            ("first", 1),
            ("unchanged", sizes.rounds),
            ("changing", sizes.rounds),
        ):
            figures[phase] = summary(rounds_of(phase, rounds, master, slaves), sizes)
            show(phase, figures[phase])
        for pipe in (*slaves, master):
            pipe.send("stop")
        for process in processes:
            process.join()
    return figures


def rounds_of(
    phase: str, count: int, master: Connection, slaves: list[Connection]
) -> Mapping[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in ("round", "m", "mc", "s", "sc", "n")}
    for _ in range(count):
        master.send("change" if phase == "changing" else "look")
        master.recv()
        for slave in slaves:
            slave.send("sync")
        for slave in slaves:
            seconds, wall_ms, cpu_ms, topics = slave.recv()
            for name, value in (
                ("round", seconds * 1000),
                ("s", wall_ms),
                ("sc", cpu_ms),
                ("n", topics),
            ):
                found[name].append(value)
        master.send("look")
        wall_ms, cpu_ms = master.recv()
        found["m"].append(wall_ms)
        found["mc"].append(cpu_ms)
    return found


def summary(found: Mapping[str, list[float]], sizes: Sizes) -> dict[str, float]:
    if min(found["n"]) < sizes.topics:
        raise SystemExit(f"a slave has {min(found['n']):.0f} topics, not {sizes.topics}")
    longest = {
        "master_stall_ms": max(found["m"]),
        "master_stall_cpu_ms": max(found["mc"]),
        "slave_stall_ms": max(found["s"]),
        "slave_stall_cpu_ms": max(found["sc"]),
    }
    return {"round_ms": round(statistics.median(found["round"]), 1)} | {
        name: round(value, 1) for name, value in longest.items()
    }


def show(phase: str, figures: Mapping[str, float]) -> None:
    print(
        f"{phase:10} {figures['round_ms']:8.1f}"
        f" {figures['master_stall_ms']:27.1f} {figures['master_stall_cpu_ms']:9.1f}"
        f" {figures['slave_stall_ms']:7.1f} {figures['slave_stall_cpu_ms']:9.1f}"
    )


def verdict(phases: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """The longest stall of any loop in any phase."""
    cpu_ms, wall_ms = (
        max(phase[f"{who}_{kind}"] for phase in phases.values() for who in ("master", "slave"))
        for kind in ("stall_cpu_ms", "stall_ms")
    )
    return {
        "stall_cpu_ms": cpu_ms,
        "stall_ms": wall_ms,
        "goal_ms": GOAL_MS,
        "met": cpu_ms <= GOAL_MS,
        "met_by_the_clock": wall_ms <= GOAL_MS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topics", type=int, default=TOPICS)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--slaves", type=int, default=SLAVES)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    times = processor_times()
    phases = measure(Sizes(args.topics, args.groups, args.rounds), args.slaves)
    judged = verdict(phases)
    stolen_share = round(processor_times().stolen_share_since(times), 4)
    print(
        f"goal: no loop is held up for more than {GOAL_MS:g} ms: "
        f"{'met' if judged['met'] else 'MISSED'} with {judged['stall_cpu_ms']:.1f} ms of processor time; "
        f"{'met' if judged['met_by_the_clock'] else 'MISSED'} by the clock with {judged['stall_ms']:.1f} ms "
        f"({args.slaves + 1} brokers on {os.cpu_count()} cores, {stolen_share:.0%} taken by the machine's host)"
    )
    if args.topics >= TOPICS and args.slaves >= SLAVES:
        result = {
            "cores": os.cpu_count(),
            "python": sys.version.split()[0],
            "topics": args.topics,
            "groups": args.groups,
            "slaves": args.slaves,
            "rounds": args.rounds,
            "stolen_share": stolen_share,
            **judged,
            "phases": phases,
        }
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
        print(f"written: {RESULT.relative_to(Path(__file__).parents[1])}", file=sys.stderr)


if __name__ == "__main__":
    main()
