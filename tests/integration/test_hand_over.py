"""``cometmq hand-over``: another replica is the master before the old one stops."""

from __future__ import annotations

import asyncio
import sys
from functools import partial

from tests.eventually import eventually
from tests.integration.test_replicated_cluster import producer_of

from cometmq.client import Message, SendStatus
from cometmq.client.aio import PullConsumer
from cometmq.testing import cluster


async def hand_over(address: str, *options: str) -> tuple[int | None, str]:
    """Exit code, and what it prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cometmq.cli", "hand-over", "-b", address, *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def bodies(name_servers: str) -> set[bytes]:
    found: set[bytes] = set()
    async with PullConsumer("readers", name_servers=name_servers) as consumer:
        for queue in await consumer.queues("T"):
            offset, end = 0, await consumer.max_offset(queue)
            while offset < end:
                result = await consumer.pull(queue, offset)
                found |= {message.body for message in result.messages}
                offset = result.next_offset
    return found


async def test_a_rolling_restart_fails_no_send() -> None:
    async with cluster(slaves=1, controller=True) as servers, producer_of(servers) as producer:
        sent: list[bytes] = []
        stop = asyncio.Event()

        async def send() -> None:
            while not stop.is_set():
                body = b"%d" % len(sent)
                result = await producer.send(Message(topic="T", body=body), timeout=20)
                assert result.status is SendStatus.SEND_OK
                sent.append(body)
                await asyncio.sleep(0.001)  # for less to read in the end

        sending = asyncio.create_task(send())

        def goes_on(count: int) -> bool:
            return len(sent) > count or sending.done()

        await eventually(partial(goes_on, 20))
        for _ in range(2):
            (master,) = servers.masters
            code, told = await hand_over(master.address)
            assert code == 0, told
            assert "is not the master" in told
            assert master in servers.slaves
            await servers.stop(master)
            count = len(sent)
            # The next one is stopped as soon as this one is back: the command waits until it has everything.
            await servers.start(master)
            await eventually(partial(goes_on, count))
        stop.set()
        await sending
        stored = await bodies(servers.name_servers)
        assert set(sent) <= stored


async def test_who_has_nobody_to_hand_over_to_is_told() -> None:
    async with cluster(slaves=1, controller=True) as servers:
        (slave,), (master,) = servers.slaves, servers.masters
        code, told = await hand_over(slave.address)
        assert code == 0
        assert "is not the master" in told
        await servers.stop(slave)
        code, told = await hand_over(master.address, "--timeout", "1")
        assert code == 1
        assert "is still the master after 1 s: no other replica is alive" in told
    async with cluster() as servers:
        code, told = await hand_over(servers.broker_address)
        assert code == 1
        assert "has no controller (enableControllerMode)" in told
    code, told = await hand_over("127.0.0.1:1")
    assert code == 1
    assert "asking the broker for its settings failed at 1 of 1 servers" in told
