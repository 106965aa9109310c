"""How long an operator's listings take with 1,000 topics, 2,000 groups and three brokers.

    python benchmarks/admin.py [--topics 1000] [--groups 2000] [--brokers 3] [--rounds 5]

Name server and brokers are processes of ours. Every topic has four queues on each broker and a message in one of them;
every group has positions in all queues of one topic; a hundred groups are online. ``admin.`` is one call of the
library, over connections that are open, as a dashboard has them. ``mqadmin`` is the command, from its start to its end,
so Python's start is in it. Medians of the rounds.

Writes ``results/admin.json``, unless there is less of anything than by default.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]

from benchmarks.parts.goals import Goal, show_goals  # noqa: E402
from tests.interop.servers import cometmq_commands  # noqa: E402
from tests.interop.systems import Broker, NameServer  # noqa: E402

from cometmq.admin import Admin, Target, new_group, new_topic  # noqa: E402
from cometmq.client import Message  # noqa: E402
from cometmq.model.group import SubscriptionGroupConfig  # noqa: E402
from cometmq.model.message_queue import MessageQueue  # noqa: E402
from cometmq.model.names import retry_topic  # noqa: E402
from cometmq.model.subscription import build_subscription  # noqa: E402
from cometmq.protocol.bodies.heartbeat import ConsumerData, HeartbeatData  # noqa: E402
from cometmq.protocol.codes import RequestCode  # noqa: E402
from cometmq.remoting.new_loop import new_event_loop  # noqa: E402

RESULT: Final = HERE / "results" / "admin.json"
TOPICS, GROUPS, BROKERS, ROUNDS = 1000, 2000, 3, 5
ONLINE: Final = 100
QUEUES: Final = 4
SECONDS_MAX: Final = 2.0

MQADMIN: Final = (
    # First, because brokers forget a client that they have not heard of for two minutes.
    "consumerConnection -g group-0001",
    "topicList",
    "topicList -c",
    "topicClusterList -t topic-0001",
    "topicStatus -t topic-0001",
    "topicRoute -t topic-0001 -l",
    "statsAll",
    "getConsumerConfig -g group-0001",
    "consumerProgress",
    "consumerProgress -g group-0001",
    "listDeadLetters -g group-0001",
    "brokerConsumeStats -b {broker}",
    "producer -b {broker}",
    "clusterList",
    "clusterList -m",
    "brokerStatus -c {cluster}",
    "getBrokerConfig -c {cluster}",
    "getNamesrvConfig",
    "haStatus -c {cluster}",
    "exportMetadata -c {cluster} -f {directory}",
    "exportConfigs -c {cluster} -f {directory}",
    "exportMetrics -c {cluster} -f {directory}",
    "exportDefinitions -c {cluster} -f {directory}/definitions.json",
)
"""The commands that list something, with as much as there is to list."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--topics", type=int, default=TOPICS)
    parser.add_argument("--groups", type=int, default=GROUPS)
    parser.add_argument("--brokers", type=int, default=BROKERS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    sizes = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="cometmq-admin-") as made,
        asyncio.Runner(loop_factory=new_event_loop) as runner,
    ):
        figures = runner.run(measure(Path(made), sizes))
    for name, seconds in figures["seconds"].items():
        print(f"{name:48} {seconds * 1000:8.0f} ms")
    show_goals(figures["goals"])
    given = (sizes.topics, sizes.groups, sizes.brokers, sizes.rounds)
    if all(
        one >= least for one, least in zip(given, (TOPICS, GROUPS, BROKERS, ROUNDS), strict=True)
    ):
        RESULT.write_text(json.dumps(figures, indent=1) + "\n")
        print(f"written: {RESULT.relative_to(HERE.parent)}", file=sys.stderr)
    return 0


async def measure(directory: Path, sizes: argparse.Namespace) -> dict[str, Any]:
    commands = cometmq_commands()
    with ExitStack() as stack:
        name_server = stack.enter_context(NameServer(commands, directory / "namesrv").running())
        for number in range(sizes.brokers):
            broker = Broker([name_server], directory / f"broker-{number}", f"broker-{number}")
            stack.callback(broker.kill)
            broker.start(commands)
        async with Admin(name_server.address, timeout=30) as admin:
            began = time.monotonic()
            await fill(admin, sizes)
            print(f"filled in {time.monotonic() - began:.1f} s", file=sys.stderr)
            seconds = {
                name: await median(listing, count, sizes.rounds)
                for name, (listing, count) in listings(admin, sizes).items()
            }
            [cluster] = await admin.clusters.all()
            [broker, *_] = await admin.brokers.places()
            for line in MQADMIN:
                words = line.format(
                    broker=broker.address, cluster=cluster.name, directory=directory / "export"
                )
                shown = line.format(broker="BROKER", cluster="CLUSTER", directory="DIRECTORY")
                seconds[f"mqadmin {shown}"] = command(name_server.address, words, sizes.rounds)
    goals = [
        Goal(
            what=name,
            goal=f"below {SECONDS_MAX:g} s",
            measured=f"{value:.2f} s",
            met=value < SECONDS_MAX,
        )
        for name, value in seconds.items()
    ]
    return {"sizes": vars(sizes), "seconds": seconds, "goals": goals}


async def fill(admin: Admin, sizes: argparse.Namespace) -> None:
    topics = [
        new_topic(f"topic-{i:04}", read_queues=QUEUES, write_queues=QUEUES)
        for i in range(sizes.topics)
    ]
    groups: list[SubscriptionGroupConfig] = [
        new_group(f"group-{i:04}") for i in range(sizes.groups)
    ]
    retries = [
        new_topic(retry_topic(one.group_name), read_queues=1, write_queues=1) for one in groups
    ]
    for places in (
        await admin.topics.create_many([*topics, *retries]),
        await admin.groups.create_many(groups),
    ):
        places.raise_failed("filling")
    names = [place.broker_name for place in await admin.brokers.places()]
    for number, topic in enumerate(topics):
        queue = MessageQueue(names[number % len(names)], 0, topic.topic_name)
        await admin.messages.send(Message(topic=topic.topic_name, body=b"x"), queue=queue)
    addresses = {place.broker_name: place.address for place in await admin.brokers.places()}
    calls = admin._rooms.calls
    wanted = {
        address: [
            (
                group.group_name,
                MessageQueue(name, queue_id, topics[number % len(topics)].topic_name),
            )
            for number, group in enumerate(groups)
            for queue_id in range(QUEUES)
        ]
        for name, address in addresses.items()
    }

    async def commit(address: str, what: tuple[str, MessageQueue]) -> None:
        await admin.offsets._commit_at(address, what[0], what[1], 0)

    (await calls.fan_out.many(wanted, commit)).raise_failed("committing")
    for number, group in enumerate(groups[:ONLINE]):
        consumer = ConsumerData(
            group_name=group.group_name,
            consume_type="CONSUME_PASSIVELY",
            message_model="CLUSTERING",
            consume_from_where="CONSUME_FROM_LAST_OFFSET",
            subscription_data_set=[build_subscription(topics[number].topic_name, "*", version=1)],
            unit_mode=False,
        )
        beat = HeartbeatData(client_id=f"client-{number}", consumer_data_set=[consumer])
        for address in addresses.values():
            await calls.ask(address, RequestCode.HEART_BEAT, body=beat.encode())


Listing = Callable[[], Awaitable[Any]]


def listings(admin: Admin, sizes: argparse.Namespace) -> dict[str, tuple[Listing, int]]:
    """What is listed, and how many rows it has at least."""
    topics, groups = sizes.topics, sizes.groups
    return {
        "admin.topics.names": (admin.topics.names, topics),
        "admin.topics.rows": (admin.topics.rows, topics + groups),
        "admin.topics.all_groups": (admin.topics.all_groups, topics),
        "admin.topics.traffic": (admin.topics.traffic, topics),
        "admin.groups.rows": (admin.groups.rows, groups),
        "admin.groups.summary": (admin.groups.summary, groups),
        "admin.clusters.brokers": (admin.clusters.brokers, sizes.brokers),
        "admin.definitions.read": (lambda: _rows(admin.definitions.read), topics + groups),
        "admin.groups.progress": (
            lambda: _rows(lambda: admin.groups.progress("group-0001")),
            QUEUES,
        ),
        "admin.topics.status": (lambda: _rows(lambda: admin.topics.status("topic-0001")), QUEUES),
        "admin.brokers.settings": (
            lambda: _rows(lambda: admin.brokers.settings(Target())),
            sizes.brokers,
        ),
    }


async def _rows(ask: Listing) -> list[Any]:
    told = await ask()
    if hasattr(told, "done"):
        return list(told.done)
    return [*told.topics, *told.groups] if hasattr(told, "topics") else list(told.queues)


async def median(listing: Listing, count: int, rounds: int) -> float:
    took = []
    for _ in range(rounds):
        began = time.monotonic()
        rows = await listing()
        took.append(time.monotonic() - began)
        assert len(rows) >= count, f"{len(rows)} rows, expected at least {count}"
        assert not getattr(rows, "failed", None), rows.failed
    return statistics.median(took)


def command(name_server: str, words: str, rounds: int) -> float:
    """Median of the seconds that a command takes."""
    took = []
    for _ in range(rounds):
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "cometmq.cli.mqadmin", *words.split(), "-n", name_server],
            capture_output=True,
            text=True,
            check=False,
        )
        took.append(time.monotonic() - began)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        assert done.stdout.strip(), words
    return statistics.median(took)


if __name__ == "__main__":
    sys.exit(main())
