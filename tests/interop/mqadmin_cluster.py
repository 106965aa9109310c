"""A cluster of one make, prepared for mqadmin's commands: the same topics, messages and groups every time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.eventually import eventually

from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.send.producer import Producer, SendResult
from cometmq.client.errors import NoRoute
from cometmq.model.messages.message import Message
from cometmq.remoting.client import RemotingClient

from . import patience
from .admin_calls import create_group, create_topic
from .java import QUIET_LOGBACK
from .mqadmin_script import GROUP, ONLINE_GROUP, PRODUCERS, SCRIPT, TOPIC, Step
from .servers import ServerCommands
from .systems import Broker, NameServer

BROKER_NAME = "admin-broker"
CLUSTER_NAME = "interop-cluster"
QUEUES = 4
MESSAGES_PER_QUEUE = 5
SCRIPT_SECONDS_MAX = 240
WAIT_SECONDS_MAX = 60.0


class AdminProgram(Protocol):
    """RocketMQ's mqadmin (``SingleJava("AdminCommands")``) or ours (``OwnTool``)."""

    def run(
        self, home: Path, arguments: Iterable[str], *, text: str = "", seconds_max: float
    ) -> str: ...


@dataclass(frozen=True)
class Answer:
    """What a command printed, and the words in it that belong to this cluster alone."""

    step: Step
    text: str
    milliseconds: int


@dataclass(frozen=True)
class Transcript:
    """The answers of one cluster to the whole script; ``values`` are what its words in braces stood for."""

    answers: list[Answer]
    values: dict[str, str]


def run_script(
    commands: ServerCommands,
    program: AdminProgram,
    version: str,
    directory: Path,
    settings: Mapping[str, object],
) -> Transcript:
    """Starts a cluster, prepares it, runs all commands of a version against it, and ends it.

    Args:
        settings: further ones of the broker.
    """
    with ExitStack() as stack:
        name_server = NameServer(commands, directory / "namesrv")
        stack.callback(name_server.kill)
        name_server.start()
        broker = Broker(
            [name_server],
            directory / "broker",
            BROKER_NAME,
            mappedFileSizeCommitLog=16 * 1024 * 1024,
            mappedFileSizeConsumeQueue=20 * 1000,
            **settings,
        )
        stack.callback(broker.kill)
        broker.start(commands)
        sent = asyncio.run(prepare(name_server.address, broker.address))
        values = _values(name_server, broker, sent, directory)
        return run_steps(SCRIPT, program, version, directory / "home", values)


def run_steps(
    script: Iterable[Step],
    program: AdminProgram,
    version: str,
    home: Path,
    values: dict[str, str],
    *,
    tools: str = "",
) -> Transcript:
    """Runs the commands of a script that a version has, in one process.

    Args:
        values: what the words in braces stand for; ``name_server`` is one of them.
        tools: content of ``tools.yml``, which names the tool's account.
    """
    steps = [step for step in script if version in step.versions]
    arguments = [values["name_server"], TOPIC, str(QUEUES * MESSAGES_PER_QUEUE)]
    arguments += [ONLINE_GROUP, PRODUCERS]
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "logback_tools.xml").write_text(QUIET_LOGBACK, encoding="utf-8")
    if tools:
        (home / "conf" / "tools.yml").write_text(tools, encoding="utf-8")
    lines = [_line(step, values) for step in steps]
    output = program.run(home, arguments, text="".join(lines), seconds_max=SCRIPT_SECONDS_MAX)
    return Transcript(_answers(steps, output), values)


def _line(step: Step, values: dict[str, str]) -> str:
    words = step.words(values)
    if not step.command.startswith("@"):
        words += ["-n", values["name_server"]]
    return "\t".join(words) + "\n"


def _answers(steps: list[Step], output: str) -> list[Answer]:
    blocks = output.split(">>> ")[1:]
    assert len(blocks) == len(steps), f"{len(blocks)} answers to {len(steps)} commands\n{output}"
    answers = []
    for step, block in zip(steps, blocks, strict=True):
        first, _, text = block.partition("\n")
        text = text[: text.rindex("<<<")]
        answers.append(Answer(step, text, int(first)))
    return answers


def _values(
    name_server: NameServer, broker: Broker, sent: SendResult, directory: Path
) -> dict[str, str]:
    topics = [{"topicName": f"{TOPIC}-list-{number}"} for number in range(2)]
    groups = [{"groupName": f"{GROUP}-list-{number}"} for number in range(2)]
    files = {"topics_file": topics, "groups_file": groups}
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content))
    return {
        "name_server": name_server.address,
        "broker": broker.address,
        "cluster": CLUSTER_NAME,
        "name": BROKER_NAME,
        "directory": str(directory),
        "offset_id": sent.offset_id,
        "missing_id": sent.offset_id[:16] + "0000000000FFFFFF",
        "message_id": sent.message_id,
        **{name: str(directory / name) for name in files},
    }


async def prepare(name_server: str, broker: str) -> SendResult:
    """Topics, messages and positions of groups, the same every time; the last message."""
    remoting = RemotingClient()
    await create_topic(remoting, broker, TOPIC, QUEUES)
    for group in (GROUP, f"{GROUP}-clone"):
        # Many commands look a group up by the topic of its own, which a first consumer would create.
        await create_topic(remoting, broker, f"%RETRY%{group}", 1)
        await create_group(remoting, broker, group)
    await create_group(remoting, broker, ONLINE_GROUP)
    await remoting.close()
    async with (
        Producer("admin-writers", name_servers=name_server) as producer,
        PullConsumer(GROUP, name_servers=name_server) as consumer,
    ):

        async def is_known() -> bool:
            try:
                await consumer.queues(TOPIC)
            except NoRoute:
                return False
            return True

        await eventually(is_known, seconds=WAIT_SECONDS_MAX)
        queues = await consumer.queues(TOPIC)
        for number in range(QUEUES * MESSAGES_PER_QUEUE):
            message = Message(
                topic=TOPIC,
                body=f"body {number}".encode(),
                tags=f"tag{number % 2}",
                keys=[f"key-{number}"],
                properties={"colour": "grün"},
            )
            sent = await patience.send(producer, message, queues[number % QUEUES])

        async def is_readable() -> bool:
            # RocketMQ's queues and index follow its log with a delay.
            ends = [await consumer.max_offset(queue) for queue in queues]
            return ends == [MESSAGES_PER_QUEUE] * QUEUES and bool(
                await consumer.query(TOPIC, sent.message_id)
            )

        await eventually(is_readable, seconds=WAIT_SECONDS_MAX)
        for queue in queues:
            await consumer.commit(queue, queue.queue_id)
    return sent
