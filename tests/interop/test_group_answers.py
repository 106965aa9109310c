"""What a broker answers about the positions of groups, ours beside RocketMQ 4.9.7: code, remark and body are compared.

Both are given the same topics, messages and positions, and asked the same questions in the same order. Some of them
change something that the next ones ask about. Times are compared by whether there is one.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cometmq.protocol import fastjson
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient

from .admin_calls import create_group, create_topic
from .java import MissingComponent
from .systems import OURS, ROCKETMQ_4, Broker, NameServer, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

EXIT_CODE_MISSING = 3
CALL_SECONDS = 15.0
TOPIC = "Measured"
GROUP = "Reader"
PART = "Half"
"""A group that has a position in one of the queues only."""
STORED = {0: 4, 1: 2, 2: 0}
"""Queue to its number of messages."""
TIME_MS_MIN = 1_000_000_000_000

SET_OFFSET, GET_OFFSET, STATS, RESET, STATUS, CONSUMERS = 15, 14, 208, 222, 223, 300
SPAN, CORRECTION, CLONE = 303, 308, 314

Ext = dict[str, str]


def _reset(**fields: str) -> tuple[int, Ext]:
    ext = {"topic": TOPIC, "group": GROUP, "timestamp": "0", "isForce": "true", **fields}
    return RESET, ext


def _clone(src: str, dest: str, **fields: str) -> tuple[int, Ext]:
    return CLONE, {"srcGroup": src, "destGroup": dest, **fields}


QUESTIONS: tuple[tuple[int, Ext], ...] = (
    (STATS, {"consumerGroup": GROUP}),
    (STATS, {"consumerGroup": GROUP, "topic": TOPIC}),
    (STATS, {"consumerGroup": GROUP, "topic": "nowhere"}),
    (STATS, {"consumerGroup": PART}),
    (STATS, {"consumerGroup": "nobody"}),
    (STATS, {"consumerGroup": "nobody", "topic": TOPIC}),
    (SPAN, {"topic": TOPIC, "group": GROUP}),
    (SPAN, {"topic": TOPIC, "group": PART}),
    (SPAN, {"topic": TOPIC, "group": "nobody"}),
    (SPAN, {"topic": "nowhere", "group": GROUP}),
    (CONSUMERS, {"topic": TOPIC}),
    (CONSUMERS, {"topic": "nowhere"}),
    (CORRECTION, {"topic": TOPIC, "compareGroup": GROUP, "filterGroups": ""}),
    _reset(),
    _reset(timestamp="-1"),
    _reset(group=PART),
    _reset(group="nobody"),
    _reset(topic="nowhere"),
    (STATS, {"consumerGroup": GROUP}),
    _clone(GROUP, "clone-1", topic=TOPIC, offline="true"),
    (STATS, {"consumerGroup": "clone-1"}),
    _clone(GROUP, "clone-2", offline="false"),
    (STATS, {"consumerGroup": "clone-2"}),
    _clone(GROUP, "clone-3", topic="nowhere", offline="true"),
    (STATS, {"consumerGroup": "clone-3"}),
    _clone("nobody", "clone-4", topic=TOPIC, offline="true"),
    (STATS, {"consumerGroup": "clone-4"}),
    (CONSUMERS, {"topic": TOPIC}),
)

DIFFERENT = {
    7: "RocketMQ takes a group without a position in an empty queue for late since 1970",
    8: "the same",
    22: "RocketMQ forgets which topics it found for a clone of all topics (4.9.7, cloneGroupOffset)",
    27: "and so does not know that group",
}
"""The places of questions that ours answers otherwise, on purpose."""


def test_groups_are_measured_moved_and_cloned_as_by_rocketmq(tmp_path: Path) -> None:
    ours, theirs = (_answers(make, tmp_path / make) for make in (OURS, ROCKETMQ_4))
    pairs = list(zip(ours, theirs, strict=True))
    for number, (question, (mine, other)) in enumerate(zip(QUESTIONS, pairs, strict=True)):
        if number not in DIFFERENT:
            assert mine == other, question
    assert [number for number, (mine, other) in enumerate(pairs) if mine != other] == [*DIFFERENT]


def _answers(make: str, directory: Path) -> list[tuple[int, str, Any]]:
    with ExitStack() as stack:
        try:
            commands = commands_of(make, directory / "home")
        except MissingComponent as error:
            pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)
        name_server = NameServer(commands, directory / "namesrv")
        stack.callback(name_server.kill)
        name_server.start()
        broker = Broker(
            [name_server],
            directory / "broker",
            "broker-g",
            mappedFileSizeCommitLog=1 << 24,
            # Ours resets positions as 5.x does, unless told otherwise; 4.9 does not know the key.
            useServerSideResetOffset="false",
        )
        stack.callback(broker.kill)
        broker.start(commands)
        return asyncio.run(_ask_all(broker.address))


async def _ask_all(address: str) -> list[tuple[int, str, Any]]:
    remoting = RemotingClient()
    try:
        await _prepare(remoting, address)
        answers = []
        for code, ext in QUESTIONS:
            reply = await remoting.call(address, _command(code, ext), CALL_SECONDS)
            body = fastjson.loads(bytes(reply.body)) if reply.body else None
            answers.append((reply.code, _first_line(reply.remark), _comparable(body)))
        return answers
    finally:
        await remoting.close()


async def _prepare(remoting: RemotingClient, address: str) -> None:
    await create_topic(remoting, address, TOPIC, len(STORED))
    for group in (GROUP, PART):
        await create_group(remoting, address, group)
    for queue_id, count in STORED.items():
        for number in range(count):
            ext = {
                "producerGroup": "p",
                "topic": TOPIC,
                "defaultTopic": "TBW102",
                "defaultTopicQueueNums": "4",
                "queueId": str(queue_id),
                "sysFlag": "0",
                "bornTimestamp": str(int(time.time() * 1000)),
                "flag": "0",
            }
            reply = await remoting.call(address, _command(10, ext, b"%d" % number), CALL_SECONDS)
            assert reply.code == 0, reply.remark
    # The queues are filled a moment after the log.
    async with asyncio.timeout(CALL_SECONDS):
        for queue_id, count in STORED.items():
            queue = {"topic": TOPIC, "queueId": str(queue_id)}
            while True:
                reply = await remoting.call(address, _command(30, queue), CALL_SECONDS)
                if (reply.ext or {}).get("offset") == str(count):
                    break
                await asyncio.sleep(0.05)
    for group, positions in ((GROUP, {0: 2, 1: 2, 2: 0}), (PART, {0: 1})):
        for queue_id, offset in positions.items():
            ext = {"consumerGroup": group, "topic": TOPIC, "queueId": str(queue_id)}
            reply = await remoting.call(
                address, _command(SET_OFFSET, ext | {"commitOffset": str(offset)}), CALL_SECONDS
            )
            assert reply.code == 0, reply.remark


def _command(code: int, ext: Ext, body: bytes = b"") -> Command:
    return Command(code, dict(ext), body, language="JAVA", version=399)


def _first_line(remark: str | None) -> str:
    """Without the address of a page of help and a stack trace."""
    return (remark or "").split("\n")[0]


def _comparable(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        # Known to our broker from 5.x alone.
        return {
            name: _comparable(each, name) for name, each in value.items() if name != "pullOffset"
        }
    if isinstance(value, list):
        return sorted((_comparable(each) for each in value), key=lambda each: json.dumps(each))
    if key == "delayTime" and value > 0:
        return "late"
    if isinstance(value, int) and value > TIME_MS_MIN:
        return "a time"
    if key.endswith("Str"):
        return "".join("9" if character.isdigit() else character for character in value)
    return value
