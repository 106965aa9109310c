"""A disk that really is full: sends are refused with a reason, nothing acknowledged is lost, and it ends by itself."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cometmq.base.errors import CometError
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.reply_errors import BrokerReplyError
from cometmq.testing import cluster

MIB = 1024 * 1024
SETTINGS = {
    "mappedFileSizeCommitLog": str(2 * MIB),
    "maxMessageSize": str(256 * 1024),
    "maxHashSlotNum": "500",
    "maxIndexNum": "2000",
    # The disk is to be full for real, not by a ratio.
    "diskMaxUsedSpaceRatio": "95",
}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """24 MiB of its own."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    mounted = tmp_path / "disk"
    mounted.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", mounted], check=True)
    try:
        yield mounted
    finally:
        subprocess.run(["umount", "--lazy", mounted], check=True)


async def test_a_full_disk_refuses_sends_and_recovers_by_itself(small_disk: Path) -> None:
    await _fill_and_free(small_disk)


async def _fill_and_free(disk: Path) -> None:
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(12 * MIB))
    acknowledged: dict[tuple[MessageQueue, int], bytes] = {}
    async with (
        cluster(settings=SETTINGS, data_directory=str(disk / "data")) as servers,
        Producer("fill", name_servers=servers.name_servers) as producer,
        PullConsumer("read", name_servers=servers.name_servers) as consumer,
    ):
        refusal = await _send_until_refused(producer, acknowledged)
        assert refusal.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert "space" in (refusal.remark or "")
        assert len(acknowledged) > 20
        # Reading goes on meanwhile.
        await _verify(consumer, acknowledged)

        ballast.unlink()
        async with asyncio.timeout(30):
            while True:
                try:
                    await _send(producer, acknowledged, b"after")
                    break
                except CometError:
                    await asyncio.sleep(0.1)
        await _verify(consumer, acknowledged)


async def _send_until_refused(
    producer: Producer, acknowledged: dict[tuple[MessageQueue, int], bytes]
) -> BrokerReplyError:
    for number in range(1000):
        try:
            await _send(producer, acknowledged, b"%d" % number + os.urandom(100 * 1024))
        except BrokerReplyError as error:
            return error
    raise AssertionError("100 MB went onto a disk of 24")


async def _send(
    producer: Producer, acknowledged: dict[tuple[MessageQueue, int], bytes], body: bytes
) -> None:
    result = await producer.send(Message(topic="Full", body=body, keys=["k"]))
    acknowledged[result.queue, result.queue_offset] = body


async def _verify(
    consumer: PullConsumer, acknowledged: dict[tuple[MessageQueue, int], bytes]
) -> None:
    for (queue, offset), body in acknowledged.items():
        result = await consumer.pull(queue, offset, count_max=1)
        assert [message.body for message in result.messages] == [body]
