"""Popped messages in a store that changes hands: what is open under one make of broker comes again from the next."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from cometmq.model.messages.record import Record, decode_records
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient

from .admin_calls import CALL_SECONDS, create_group, create_topic
from .conftest import required
from .systems import OURS, ROCKETMQ_5, Broker, NameServer, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(500)]

TOPIC = "pop-exchange"
GROUP = "pop-exchange-group"
QUEUES = 2
COUNT = 12
INVISIBLE_MS = 10_000
WAIT_SECONDS_MAX = 90.0
POP, ACK = 200050, 200051
FIRST_REPEATS = 3
"""The visit from which on RocketMQ's broker finds a timer index of its own. Its check-points wait in there, and it
repeats those that we delivered meanwhile: what they name comes once more."""


def test_open_messages_are_handed_on(tmp_path: Path) -> None:
    with required():
        makes = {system: commands_of(system, tmp_path / system) for system in (OURS, ROCKETMQ_5)}
    with NameServer(makes[OURS], tmp_path / "namesrv").running() as name_server:
        broker = Broker([name_server], tmp_path, "pops")
        # Bodies that were popped and left open by the broker before.
        left: set[bytes] = set()
        done: set[bytes] = set()
        for number, system in enumerate((OURS, ROCKETMQ_5, OURS, ROCKETMQ_5, OURS)):
            try:
                broker.start(makes[system])
                left = asyncio.run(_visit(broker.address, number, left, done))
                broker.stop()
            finally:
                broker.kill()


async def _visit(address: str, number: int, left: set[bytes], done: set[bytes]) -> set[bytes]:
    """Take what was left open, then leave others open: those are returned."""
    remoting = RemotingClient()
    try:
        if number == 0:
            await create_topic(remoting, address, TOPIC, QUEUES)
            await create_group(remoting, address, GROUP)
        may_repeat = number >= FIRST_REPEATS
        await _take_all(remoting, address, left, done, may_repeat=may_repeat)
        bodies = {b"%d-%d" % (number, index) for index in range(COUNT)}
        for index, body in enumerate(sorted(bodies)):
            await _send(remoting, address, body, index % QUEUES)
        is_open: set[bytes] = set()
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while len(is_open) + len(bodies & done) < COUNT:
            assert time.monotonic() < deadline, f"not popped: {bodies - is_open - done}"
            for record, handle in await _pop(remoting, address):
                is_new = record.body in bodies
                assert is_new or (may_repeat and record.body in done), (
                    f"came again: {record.body!r}"
                )
                if not is_new or int(record.body.partition(b"-")[2]) % 3:
                    await _ack(remoting, address, record, handle)
                    done.add(record.body)
                else:
                    is_open.add(record.body)
        return is_open
    finally:
        await remoting.close()


async def _take_all(
    remoting: RemotingClient,
    address: str,
    wanted: set[bytes],
    done: set[bytes],
    *,
    may_repeat: bool,
) -> None:
    missing = set(wanted)
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while missing:
        assert time.monotonic() < deadline, f"did not come again: {sorted(missing)}"
        for record, handle in await _pop(remoting, address):
            await _ack(remoting, address, record, handle)
            if record.body in missing:
                missing.discard(record.body)
                done.add(record.body)
            else:
                assert may_repeat, f"came again although it is done: {record.body!r}"
        await asyncio.sleep(0.1)


async def _pop(remoting: RemotingClient, address: str) -> list[tuple[Record, str]]:
    """Messages with their handles, made of the reply's infos as Java's client does it."""
    ext = {
        "consumerGroup": GROUP,
        "topic": TOPIC,
        "queueId": "-1",
        "maxMsgNums": "4",
        "invisibleTime": str(INVISIBLE_MS),
        "pollTime": "0",
        "bornTime": str(time.time_ns() // 1_000_000),
        "initMode": "0",
        "expType": "TAG",
        "exp": "*",
        "order": "false",
    }
    reply = await remoting.call(address, Command(POP, ext), CALL_SECONDS)
    if reply.code != 0:
        return []
    info = reply.ext or {}
    starts = {
        tuple(part.split(" ")[:2]): part.split(" ")[2]
        for part in info["startOffsetInfo"].split(";")
    }
    places = {
        (*part.split(" ")[:2], offset)
        for part in info["msgOffsetInfo"].split(";")
        for offset in part.split(" ")[2].split(",")
    }
    found: list[tuple[Record, str]] = []
    for record in decode_records(reply.body):
        handle = record.properties.get("POP_CK")
        if handle is None:
            queue, offset = str(record.queue_id), str(record.queue_offset)
            (kind,) = {kind for kind, *place in places if place == [queue, offset]}
            parts = [starts[kind, queue], info["popTime"], info["invisibleTime"]]
            handle = " ".join([*parts, info["reviveQid"], kind, "pops", queue, offset])
        found.append((record, handle))
    return found


async def _ack(remoting: RemotingClient, address: str, record: Record, handle: str) -> None:
    _, _, _, _, kind, _, queue, offset = handle.split(" ")
    ext = {
        "consumerGroup": GROUP,
        "topic": {"0": TOPIC, "1": f"%RETRY%{GROUP}_{TOPIC}", "2": f"%RETRY%{GROUP}+{TOPIC}"}[kind],
        "queueId": queue,
        "extraInfo": handle,
        "offset": offset,
    }
    reply = await remoting.call(address, Command(ACK, ext), CALL_SECONDS)
    assert reply.code == 0, reply.remark


async def _send(remoting: RemotingClient, address: str, body: bytes, queue_id: int) -> None:
    ext = {
        **{"a": "PG", "b": TOPIC, "c": "TBW102", "d": "4", "f": "0", "h": "0", "j": "0"},
        **{"g": str(time.time_ns() // 1_000_000), "k": "false", "m": "false"},
        "e": str(queue_id),
        "i": f"UNIQ_KEY\x01{body.decode()}\x02",
    }
    reply = await remoting.call(address, Command(310, ext, body), CALL_SECONDS)
    assert reply.code == 0, reply.remark
