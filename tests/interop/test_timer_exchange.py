"""Timed messages in a store that changes hands: what waits under one make of broker is delivered by the next."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest

from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient

from .admin_calls import CALL_SECONDS, create_topic, read_all
from .conftest import required
from .systems import OURS, ROCKETMQ_5, Broker, NameServer, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

TOPIC = "timer-exchange"
SHORT_MS, LONG_MS = 300, 10_000
READING_MS = 2000
"""For RocketMQ's broker to read what waits when it has started."""
COUNT = 4
WAIT_SECONDS_MAX = 60.0
FIRST_REPEATS = 3
"""The visit from which on RocketMQ's broker finds an index of its own, and repeats what we delivered meanwhile."""


def test_waiting_messages_are_handed_on(tmp_path: Path) -> None:
    with required():
        makes = {system: commands_of(system, tmp_path / system) for system in (OURS, ROCKETMQ_5)}
    with NameServer(makes[OURS], tmp_path / "namesrv").running() as name_server:
        broker = Broker([name_server], tmp_path, "timers", recallMessageEnable="true")
        sent: dict[bytes, int] = {}
        recalled: dict[bytes, int] = {}
        for number, system in enumerate((OURS, ROCKETMQ_5, OURS, ROCKETMQ_5, OURS)):
            try:
                broker.start(makes[system])
                if system == ROCKETMQ_5:
                    _forget_overdue(recalled)
                asyncio.run(_visit(broker.address, number, sent, recalled))
                broker.stop()
            finally:
                broker.kill()


def _forget_overdue(recalled: dict[bytes, int]) -> None:
    """RocketMQ's broker delivers what is due when it starts at once, and reads too late that it was taken back."""
    now_ms = time.time_ns() // 1_000_000
    for body in [body for body, due_ms in recalled.items() if due_ms <= now_ms + READING_MS]:
        del recalled[body]


async def _visit(
    address: str, number: int, sent: dict[bytes, int], recalled: dict[bytes, int]
) -> None:
    remoting = RemotingClient()
    try:
        if number == 0:
            await create_topic(remoting, address, TOPIC, 1)
        # What the broker before left behind.
        may_repeat = number >= FIRST_REPEATS
        await _until_delivered(remoting, address, sent, recalled, may_repeat=may_repeat)
        for delay_ms in (SHORT_MS, LONG_MS):
            for index in range(COUNT):
                body = b"%d-%d-%d" % (number, delay_ms, index)
                sent[body] = await _send(remoting, address, body, delay_ms)
            if delay_ms == SHORT_MS:
                await _until_delivered(remoting, address, sent, recalled, may_repeat=may_repeat)
        # Taken back under this broker, not delivered by the next.
        body = b"%d-recalled" % number
        recalled[body] = await _send(remoting, address, body, LONG_MS, is_recalled=True)
    finally:
        await remoting.close()


async def _until_delivered(
    remoting: RemotingClient,
    address: str,
    sent: dict[bytes, int],
    recalled: dict[bytes, int],
    *,
    may_repeat: bool,
) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        records = await read_all(remoting, address, TOPIC)
        found = Counter(record.body for record in records)
        assert not found.keys() & recalled.keys(), "delivered although taken back"
        assert may_repeat or set(found.values()) <= {1}, f"delivered twice: {found}"
        for record in records:
            assert record.store_timestamp >= sent.get(record.body, 0), f"too early: {record}"
        if found.keys() >= sent.keys():
            return
        assert time.monotonic() < deadline, f"not delivered: {sent.keys() - found.keys()}"
        await asyncio.sleep(0.05)


async def _send(
    remoting: RemotingClient, address: str, body: bytes, delay_ms: int, *, is_recalled: bool = False
) -> int:
    """When the message is due."""
    due_ms = time.time_ns() // 1_000_000 + delay_ms
    key = body.decode()
    ext = {
        **{"a": "PG", "b": TOPIC, "c": "TBW102", "d": "4", "e": "0", "f": "0", "h": "0", "j": "0"},
        **{"g": str(time.time_ns() // 1_000_000), "k": "false", "m": "false"},
        "i": f"TIMER_DELIVER_MS\x01{due_ms}\x02UNIQ_KEY\x01{key}\x02",
    }
    reply = await remoting.call(address, Command(code=310, ext=ext, body=body), CALL_SECONDS)
    assert reply.code == 0, reply.remark
    if is_recalled:
        handle = (reply.ext or {})["recallHandle"]
        ext = {"producerGroup": "PG", "topic": TOPIC, "recallHandle": handle}
        reply = await remoting.call(address, Command(code=370, ext=ext), CALL_SECONDS)
        assert (reply.code, (reply.ext or {})["msgId"]) == (0, key), reply.remark
    return due_ms
