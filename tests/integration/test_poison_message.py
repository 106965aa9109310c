"""Bodies that say that they are compressed and do not unpack: every consumer passes them and gets the rest."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.client.aio.pull.lite_pull_consumer import LitePullConsumer
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.push.push_consumer import PushConsumer
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.lite_pull_config import LitePullConfig
from cometmq.model.flags import COMPRESSION_LZ4, COMPRESSION_ZSTD, SysFlag
from cometmq.model.messages.compression import DECOMPRESSED_BYTES_MAX
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.testing.cluster import Cluster, cluster

from .raw_client import RawClient

TOPIC = "Poisoned"
GROUP = "Drinkers"
DEAD = f"%DLQ%{GROUP}"
PACKED = int(SysFlag.COMPRESSED)
SETTINGS = {"messageDelayLevel": "1s " * 17 + "1s"}
FROM_FIRST = "CONSUME_FROM_FIRST_OFFSET"

BOMB = zlib.compress(bytes(DECOMPRESSED_BYTES_MAX + 1), 9)
POISON = {
    "broken": (b"this is not zlib", PACKED, "compressed body is broken"),
    "cut off": (zlib.compress(b"long " * 1000)[:-5], PACKED, "compressed body is cut off"),
    "bomb": (BOMB, PACKED, f"compressed body is above {DECOMPRESSED_BYTES_MAX} bytes"),
    "lz4": (b"this is not lz4", PACKED | COMPRESSION_LZ4, "compressed body is broken"),
    "zstd": (b"this is not zstd", PACKED | COMPRESSION_ZSTD, "compressed body is broken"),
    "unknown": (b"of a kind to come", PACKED | 7 << 8, "unknown compression type 7"),
}
REASONS = [reason for _, _, reason in POISON.values()]


@asynccontextmanager
async def poisoned() -> AsyncIterator[tuple[Cluster, RawClient]]:
    """One queue: a good message, all kinds of poison, another good one."""
    async with (
        cluster(settings=SETTINGS) as servers,
        RawClient(servers.broker_address) as client,
    ):
        await send(client, b"first")
        for name, (body, sys_flag, _) in POISON.items():
            await send(client, body, sys_flag, name)
        await send(client, b"last")
        yield servers, client


async def send(client: RawClient, body: bytes, sys_flag: int = 0, key: str = "good") -> None:
    ext = {
        **{"a": "PG", "b": TOPIC, "c": "TBW102", "d": "1", "e": "0", "h": "0", "j": "0"},
        "f": str(sys_flag),
        "g": str(time.time_ns() // 1_000_000),
        "i": f"UNIQ_KEY\x01{key} {body[:5].hex()}\x02KEYS\x01{key}",
    }
    reply = await client.ask(310, ext, body)
    assert reply.code == 0, reply.remark


async def dead_letters(client: RawClient, count: int) -> dict[str, tuple[bytes, int]]:
    """By key: body and flag as they are stored."""

    async def enough() -> dict[str, tuple[bytes, int]] | None:
        found = await client.read(DEAD)
        letters = {one.properties["KEYS"]: (one.body, one.sys_flag) for one in found}
        return letters if len(letters) >= count else None

    return await eventually(enough, f"{count} dead letters", 30)


async def position(client: RawClient) -> int:
    ext = {"consumerGroup": GROUP, "topic": TOPIC, "queueId": "0"}
    return int(((await client.ask(14, ext)).ext or {}).get("offset", -1))


class Listener:
    """What came, by any kind of listener."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def one(self, message: ReceivedMessage) -> None:
        self.bodies.append(message.body)

    def one_in_thread(self, message: ReceivedMessage) -> None:
        self.bodies.append(message.body)

    async def many(self, messages: list[ReceivedMessage]) -> None:
        self.bodies += [message.body for message in messages]

    def many_in_thread(self, messages: list[ReceivedMessage]) -> None:
        self.bodies += [message.body for message in messages]


@pytest.mark.parametrize("is_orderly", [False, True])
@pytest.mark.parametrize("kind", ["one", "one_in_thread", "many", "many_in_thread"])
async def test_a_push_consumer_passes_them_on_to_the_dead_letters(
    kind: str, is_orderly: bool, caplog: pytest.LogCaptureFixture
) -> None:
    came = Listener()
    listener = {"listener" if kind.startswith("one") else "batch_listener": getattr(came, kind)}
    config = PushConsumerConfig(
        consume_from_where=FROM_FIRST, max_reconsume_times=0, consume_batch_max=32
    )
    async with poisoned() as (servers, client):
        consumer = PushConsumer(
            GROUP,
            orderly=is_orderly,
            name_servers=servers.name_servers,
            config=config,
            **listener,
        )
        consumer.subscribe(TOPIC)
        async with consumer:
            letters = await dead_letters(client, len(POISON))

            await eventually(lambda: len(came.bodies) == 2, "the last message")
        assert await position(client) == len(POISON) + 2
        # As they are stored, so that somebody else may know what to do with them.
        assert letters == {name: POISON[name][:2] for name in POISON}
    assert (came.bodies if is_orderly else sorted(came.bodies)) == [b"first", b"last"]
    for reason in REASONS:
        assert caplog.text.count(reason) == REASONS.count(reason), reason


async def test_a_message_that_is_tried_again_fails_for_the_same_reason() -> None:
    came = Listener()
    config = PushConsumerConfig(consume_from_where=FROM_FIRST, max_reconsume_times=1)
    async with poisoned() as (servers, client):
        consumer = PushConsumer(
            GROUP, listener=came.one, name_servers=servers.name_servers, config=config
        )
        consumer.subscribe(TOPIC)
        async with consumer:
            await dead_letters(client, len(POISON))
        retried = await client.read(f"%RETRY%{GROUP}")
        assert len(retried) == len(POISON)
    assert sorted(came.bodies) == [b"first", b"last"]


def check(messages: list[ReceivedMessage]) -> None:
    assert [message.body for message in messages] == [
        b"first",
        *(body for body, _, _ in POISON.values()),
        b"last",
    ]
    assert messages[0].body_error is messages[-1].body_error is None
    for message, reason in zip(messages[1:-1], REASONS, strict=True):
        assert (message.body_error or "").startswith(reason)


async def test_pull_consumers_get_them_as_they_are() -> None:
    async def lite(servers: Cluster) -> list[ReceivedMessage]:
        messages: list[ReceivedMessage] = []
        config = LitePullConfig(consume_from_where=FROM_FIRST)
        async with LitePullConsumer(
            GROUP, name_servers=servers.name_servers, config=config
        ) as consumer:
            consumer.subscribe(TOPIC)
            while len(messages) < len(POISON) + 2:
                messages += await consumer.poll(1.0)
        return messages

    async def pull(servers: Cluster) -> list[ReceivedMessage]:
        async with PullConsumer("Others", name_servers=servers.name_servers) as consumer:
            (queue,) = await consumer.queues(TOPIC)
            return (await consumer.pull(queue, 0)).messages

    async with poisoned() as (servers, _):
        check(await lite(servers))
        check(await pull(servers))


async def test_the_command_line_writes_them_as_they_are_and_says_so() -> None:
    async def consume(servers: Cluster, *options: str) -> tuple[list[bytes], str]:
        command = [sys.executable, "-m", "cometmq.cli", "consume", "-t", TOPIC, *options]
        command += ["-n", servers.name_servers]
        ended = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, timeout=60, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.splitlines(), ended.stderr.decode()

    async with poisoned() as (servers, _):
        plain, told = await consume(servers, "--base64")
        assert len(plain) == len(POISON) + 2
        lines, told_too = await consume(servers, "--json")
        fields: list[dict[str, Any]] = [json.loads(line) for line in lines]
        assert [field.get("body_error") is not None for field in fields] == [
            False,
            *[True] * len(POISON),
            False,
        ]
        for reason in REASONS:
            assert reason in told
            assert reason in told_too
