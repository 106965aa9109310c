"""Pops through a real broker, at the level of the protocol: who gets a message when, over restarts and kills."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest
from tests.eventually import eventually

from cometmq.base.errors import CometError
from cometmq.cli.server_process import ServerProcess
from cometmq.model.messages.record import Record, decode_records
from cometmq.protocol.bodies.pop import encode_bit_set
from cometmq.protocol.command import Command
from cometmq.testing.cluster import cluster

from .raw_client import RawClient

TOPIC = "Popped"
GROUP = "PopGroup"
RETRY = f"%RETRY%{GROUP}_{TOPIC}"
INVISIBLE_MS = 1500
POLL_MS = 25_000
"""Longer than a machine is busy."""
LATE_SECONDS_MAX = 15.0


class Popper(RawClient):
    async def pop(
        self,
        *,
        count: int = 32,
        invisible_ms: int = INVISIBLE_MS,
        poll_ms: int = 0,
        group: str = GROUP,
        **fields: str,
    ) -> Command:
        ext = {
            "consumerGroup": group,
            "topic": TOPIC,
            "queueId": "-1",
            "maxMsgNums": str(count),
            "invisibleTime": str(invisible_ms),
            "pollTime": str(poll_ms),
            "bornTime": str(time.time_ns() // 1_000_000),
            "initMode": "0",
            "expType": "TAG",
            "exp": "*",
            "order": "false",
        }
        return await self.ask(200050, ext | fields)

    async def take(self, **fields: object) -> list[tuple[Record, str]]:
        """Messages with their handles, made of the reply's infos as Java's client does it."""
        reply = await self.pop(**fields)  # type: ignore[arg-type]
        if reply.code != 0:
            return []
        return handles(reply)

    async def ack(self, record: Record, handle: str, *, group: str = GROUP) -> Command:
        return await self.ask(200051, self._named(record, handle, group))

    async def hide(self, record: Record, handle: str, invisible_ms: int) -> Command:
        ext = self._named(record, handle, GROUP) | {"invisibleTime": str(invisible_ms)}
        return await self.ask(200053, ext)

    def _named(self, record: Record, handle: str, group: str) -> dict[str, str]:
        kind = handle.split(" ")[4]
        topic = {"0": TOPIC, "1": f"%RETRY%{group}_{TOPIC}"}[kind]
        return {
            "consumerGroup": group,
            "topic": topic,
            "queueId": str(record.queue_id),
            "extraInfo": handle,
            "offset": handle.split(" ")[7],
        }


def handles(reply: Command) -> list[tuple[Record, str]]:
    ext = reply.ext or {}
    starts = {}
    for info in ext["startOffsetInfo"].split(";"):
        kind, queue_id, start = info.split(" ")
        starts[kind, int(queue_id)] = start
    found = []
    for record in decode_records(reply.body):
        made = record.properties.get("POP_CK")
        if made is None:
            start = starts["0", record.queue_id]
            made = (
                f"{start} {ext['popTime']} {ext['invisibleTime']} {ext['reviveQid']} 0 broker-a "
                f"{record.queue_id} {record.queue_offset}"
            )
        found.append((record, made))
    return found


async def _again(client: Popper, **fields: object) -> list[tuple[Record, str]]:
    async def some() -> list[tuple[Record, str]] | None:
        return await client.take(**fields) or None

    return await eventually(some, "a message")


async def test_messages_come_again_until_they_are_acknowledged() -> None:
    async with cluster() as servers, Popper(servers.broker_address) as client:
        for number in range(10):
            await client.send(TOPIC, b"%d" % number)
        taken = await client.take()
        assert sorted(int(record.body) for record, _ in taken) == list(range(10))
        assert await client.take() == []
        for record, handle in taken:
            if int(record.body) % 2:
                assert (await client.ack(record, handle)).code == 0
        again: list[tuple[Record, str]] = []
        while len(again) < 5:
            again += await _again(client)
        assert sorted(int(record.body) for record, _ in again) == [0, 2, 4, 6, 8]
        for record, handle in again:
            assert (record.topic, record.reconsume_times) == (TOPIC, 1)
            assert (await client.ack(record, handle)).code == 0
        await asyncio.sleep(INVISIBLE_MS / 1000 + 0.5)
        assert await client.take() == []


async def test_a_pop_waits_for_a_message_and_for_one_to_be_tried_again() -> None:
    async with (
        cluster() as servers,
        Popper(servers.broker_address) as client,
        Popper(servers.broker_address) as sender,
    ):
        await sender.send(TOPIC, b"first")
        await client.take()
        started = time.monotonic()
        reply = await client.pop(poll_ms=POLL_MS)
        assert reply.code == 0
        assert time.monotonic() - started < POLL_MS / 1000, "it came when it was due, not by chance"
        waiting = asyncio.create_task(client.pop(poll_ms=POLL_MS))

        async def is_waiting() -> bool:
            polling = {"consumerGroup": GROUP, "topic": TOPIC, "queueId": "-1"}
            return (await sender.ask(200055, polling)).ext == {"pollingNum": "1"}

        await eventually(is_waiting)
        await sender.send(TOPIC, b"second")
        assert [record.body for record, _ in handles(await waiting)] == [b"second"]


async def test_a_pop_that_waits_in_vain_is_answered_in_time() -> None:
    async with cluster() as servers, Popper(servers.broker_address) as client:
        await client.send(TOPIC, b"x")
        await client.take(invisible_ms=60_000)
        started = time.monotonic()
        reply = await client.pop(poll_ms=700)
        assert reply.code == 210
        assert 0.6 < time.monotonic() - started < LATE_SECONDS_MAX
        assert (reply.ext or {})["msgOffsetInfo"] == ""


async def test_hiding_and_batches() -> None:
    async with cluster() as servers, Popper(servers.broker_address) as client:
        for number in range(4):
            await client.send(TOPIC, b"%d" % number)
        taken = await client.take(invisible_ms=60_000)
        record, handle = taken[0]
        hidden = await client.hide(record, handle, 300)
        assert hidden.code == 0
        assert set(hidden.ext or {}) == {"popTime", "invisibleTime", "reviveQid"}
        assert (await client.hide(record, handle, 300)).code == 208
        start, pop_time, invisible, revive_queue = map(int, handle.split(" ")[:4])
        body = {
            "brokerName": "broker-a",
            "acks": [
                {
                    **{"c": GROUP, "t": TOPIC, "r": "0", "so": start, "q": record.queue_id},
                    **{"rq": revive_queue, "pt": pop_time, "it": invisible},
                    "b": encode_bit_set([1, 3]),
                }
            ],
        }
        assert (await client.ask(200151, None, body)).code == 0
        assert (await client.ask(200151, None, {})).code == 208
        assert [again.body for again, _ in await _again(client)] == [b"0"]


async def test_what_is_refused() -> None:
    async with cluster() as servers, Popper(servers.broker_address) as client:
        await client.send(TOPIC, b"x")
        for fields, code in (
            ({"maxMsgNums": "33"}, 29),
            ({"topic": "Nowhere"}, 17),
            ({"queueId": "99"}, 29),
            ({"invisibleTime": "0"}, 29),
            ({"exp": "a >", "expType": "SQL92"}, 23),
            ({"order": "true"}, 1),
            ({"bornTime": "0", "pollTime": "1000"}, 210),
        ):
            reply = await client.pop(**fields)  # type: ignore[arg-type]
            assert reply.code == code, (fields, reply.remark)
            assert (reply.ext or {})["restNum"] == "0"
        ((record, handle),) = await client.take()
        for change, code in (
            ({"topic": "Nowhere"}, 17),
            ({"queueId": "99"}, 13),
            ({"offset": "9999"}, 208),
            ({"extraInfo": "what"}, 1),
        ):
            ext = client._named(record, handle, GROUP) | change
            assert (await client.ask(200051, ext)).code == code, change


async def test_peek_and_notification() -> None:
    async with cluster() as servers, Popper(servers.broker_address) as client:
        await client.send(TOPIC, b"x")
        asked = {"consumerGroup": GROUP, "topic": TOPIC, "queueId": "-1"}
        reply = await client.ask(200052, asked | {"maxMsgNums": "32"})
        assert [record.body for record in decode_records(reply.body)] == [b"x"]
        born = str(time.time_ns() // 1_000_000)
        reply = await client.ask(200054, asked | {"pollTime": "5000", "bornTime": born})
        assert (reply.ext or {})["hasMsg"] == "true"
        assert len(await client.take()) == 1
        born = str(time.time_ns() // 1_000_000)
        reply = await client.ask(200054, asked | {"pollTime": "200", "bornTime": born})
        assert (reply.ext or {})["hasMsg"] == "false"


async def test_a_restart_keeps_what_is_out(tmp_path: Path) -> None:
    async with (
        cluster(data_directory=str(tmp_path)) as servers,
        Popper(servers.broker_address) as client,
    ):
        for number in range(3):
            await client.send(TOPIC, b"%d" % number)
        taken = await client.take(invisible_ms=4000)
        record, handle = taken[0]
        assert (await client.ack(record, handle)).code == 0
    async with (
        cluster(data_directory=str(tmp_path)) as servers,
        Popper(servers.broker_address) as client,
    ):
        assert await client.take() == []
        record, handle = taken[1]
        assert (await client.ack(record, handle)).code == 0
        assert [again.body for again, _ in await _again(client)] == [b"2"]


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
async def test_kills_lose_nothing_and_bring_back_nothing(tmp_path: Path, flush: str) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed={seed}")
    await _kills(str(tmp_path), flush, random.Random(seed))


async def _kills(directory: str, flush: str, chance: random.Random) -> None:
    servers = ServerProcess(
        directory, settings={"flushDiskType": flush, "mappedFileSizeCommitLog": str(1024 * 1024)}
    )
    sent: set[bytes] = set()
    acked: set[bytes] = set()
    tried: set[bytes] = set()
    await servers.start()
    try:
        for number in range(6):
            await _work_until_killed(servers, chance, number, sent, acked, tried)
            await servers.start()
        async with Popper(servers.broker) as client:
            left = sent - acked - tried
            deadline = time.monotonic() + 60
            while left:
                assert time.monotonic() < deadline, f"never came again: {len(left)}"
                for record, handle in await client.take(poll_ms=500):
                    assert record.body not in acked, record
                    if (await client.ack(record, handle)).code == 0:
                        acked.add(record.body)
                    left.discard(record.body)
    finally:
        await servers.stop()


async def _work_until_killed(
    servers: ServerProcess,
    chance: random.Random,
    number: int,
    sent: set[bytes],
    acked: set[bytes],
    tried: set[bytes],
) -> None:
    stop = asyncio.Event()
    async with Popper(servers.broker) as producer, Popper(servers.broker) as client:

        async def send() -> None:
            count = 0
            while not stop.is_set():
                body = b"%d/%d" % (number, count)
                count += 1
                if (await producer.send(TOPIC, body)).code == 0:
                    sent.add(body)

        async def consume() -> None:
            while not stop.is_set():
                for record, handle in await client.take(count=8, poll_ms=100):
                    assert record.body not in acked, record
                    if chance.random() < 0.3:
                        continue
                    # Until the answer comes nobody knows whether it counts.
                    tried.add(record.body)
                    reply = await client.ack(record, handle)
                    tried.discard(record.body)
                    assert reply.code == 0
                    acked.add(record.body)

        async def quietly(work: asyncio.Task[None]) -> None:
            try:
                await work
            except CometError:
                assert stop.is_set()

        works = [asyncio.create_task(send()), asyncio.create_task(consume())]
        await asyncio.sleep(1 + chance.random())
        stop.set()
        await servers.kill()
        for work in works:
            await quietly(work)
