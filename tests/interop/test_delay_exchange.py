"""Delayed messages in a store that changes hands: what waits under one make of broker is delivered once by the next."""

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
from .systems import OURS, THEIRS, Broker, NameServer, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

TOPIC = "delay-exchange"
SHORT, LONG = 1, 2
LEVELS = "1s 3s"
COUNT = 5
WAIT_SECONDS_MAX = 60.0


@pytest.mark.parametrize("theirs", THEIRS)
def test_waiting_messages_are_handed_on(theirs: str, tmp_path: Path) -> None:
    with required():
        makes = {system: commands_of(system, tmp_path / system) for system in (OURS, theirs)}
    with NameServer(makes[OURS], tmp_path / "namesrv").running() as name_server:
        broker = Broker([name_server], tmp_path, "delays", messageDelayLevel=LEVELS)
        sent: list[bytes] = []
        for number, system in enumerate((OURS, theirs, OURS, theirs, OURS)):
            try:
                broker.start(makes[system])
                asyncio.run(_visit(broker.address, number, sent))
                broker.stop()
            finally:
                broker.kill()


async def _visit(address: str, number: int, sent: list[bytes]) -> None:
    remoting = RemotingClient()
    try:
        if number == 0:
            await create_topic(remoting, address, TOPIC, 1)
        # What the broker before left behind.
        await _until_delivered(remoting, address, sent)
        for level in (SHORT, LONG):
            bodies = [b"%d-%d-%d" % (number, level, index) for index in range(COUNT)]
            for body in bodies:
                await _send(remoting, address, body, level)
            sent += bodies
            if level == SHORT:
                await _until_delivered(remoting, address, sent)
    finally:
        await remoting.close()


async def _until_delivered(remoting: RemotingClient, address: str, sent: list[bytes]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        found = Counter(record.body for record in await read_all(remoting, address, TOPIC))
        assert found <= Counter(sent), "delivered twice"
        if found == Counter(sent):
            return
        assert time.monotonic() < deadline, f"not delivered: {Counter(sent) - found}"
        await asyncio.sleep(0.05)


async def _send(remoting: RemotingClient, address: str, body: bytes, level: int) -> None:
    ext = {
        **{"a": "PG", "b": TOPIC, "c": "TBW102", "d": "4", "e": "0", "f": "0", "h": "0", "j": "0"},
        **{"g": str(time.time_ns() // 1_000_000), "k": "false", "m": "false"},
        "i": f"DELAY\x01{level}\x02UNIQ_KEY\x01{body.decode()}\x02",
    }
    reply = await remoting.call(address, Command(code=310, ext=ext, body=body), CALL_SECONDS)
    assert reply.code == 0, reply.remark
