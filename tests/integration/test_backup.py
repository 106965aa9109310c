"""``cometmq backup`` beside a broker under load, with SIGKILL for the broker, the backup and the restore."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.eventually import eventually

from cometmq.base.errors import CometError
from cometmq.cli.server_process import ServerProcess
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message

TOPIC = "Kept"
SENDERS = 8
LOG_FILE_BYTES = 256 * 1024
SETTINGS = {
    "mappedFileSizeCommitLog": str(LOG_FILE_BYTES),
    "mappedFileSizeConsumeQueue": str(20 * 500),
    "maxHashSlotNum": "1000",
    "maxIndexNum": "4000",
}

Acknowledged = dict[tuple[MessageQueue, int], bytes]


class Load:
    """Senders that go on until their broker is gone or they are told to stop."""

    def __init__(self, name_server: str, chance: random.Random) -> None:
        self.acknowledged: Acknowledged = {}
        self._name_server = name_server
        self._chance = chance
        self._stop = asyncio.Event()

    async def run(self) -> None:
        async with Producer("loaders", name_servers=self._name_server) as producer:
            await asyncio.gather(*(self._send(producer, n) for n in range(SENDERS)))

    def stop(self) -> None:
        self._stop.set()

    async def _send(self, producer: Producer, sender: int) -> None:
        while not self._stop.is_set():
            body = self._chance.randbytes(8).hex().encode() + b"x" * self._chance.randrange(4000)
            try:
                result = await producer.send(Message(topic=TOPIC, body=body, tags=str(sender)))
            except CometError:
                return
            self.acknowledged[result.queue, result.queue_offset] = body


class Shop:
    """A broker, the file that says how it is set up, and a directory of its backups."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.servers = ServerProcess(str(directory / "data"), settings=SETTINGS)
        self.backups = directory / "backups"

    def command(self, verb: str, *arguments: str, store: str = "data") -> list[str]:
        conf = self.directory / f"{store}.conf"
        root = self.directory / store / "store"
        values = {"storePathRootDir": str(root), **SETTINGS}
        conf.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        has_store = verb in ("create", "restore")
        return [
            *(sys.executable, "-m", "cometmq.cli", "backup", verb, str(self.backups)),
            *(("-c", str(conf)) if has_store else ()),
            *arguments,
        ]

    async def run(self, *command: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, output.decode()
        return output.decode()

    async def kill_while_running(self, command: list[str], is_time: Path, after_s: float) -> None:
        """SIGKILL, a moment after the first thing is there that it makes."""
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        while not is_time.exists() and process.returncode is None:
            await asyncio.sleep(0.005)
        await asyncio.sleep(after_s)
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    async def stored(self, name_server: str) -> Acknowledged:
        found: Acknowledged = {}
        async with PullConsumer("checker", name_servers=name_server) as consumer:
            for queue in await consumer.queues(TOPIC):
                offset, end = await consumer.min_offset(queue), await consumer.max_offset(queue)
                while offset < end:
                    result = await consumer.pull(queue, offset)
                    found.update(((queue, one.queue_offset), one.body) for one in result.messages)
                    offset = result.next_offset
        return found


async def lines(count: int, load: Load) -> None:
    def has_so_many() -> bool:
        return len(load.acknowledged) >= count

    await eventually(has_so_many, seconds=60)


@pytest.mark.timeout(300)
async def test_kills_of_broker_backup_and_restore_lose_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("COMETMQ_SEED", random.randrange(1 << 32)))
    print(f"COMETMQ_SEED={seed}")
    chance = random.Random(seed)
    shop = Shop(tmp_path)
    acknowledged: Acknowledged = {}
    await shop.servers.start()
    try:
        for kills in ("nobody", "backup", "broker"):
            load = Load(shop.servers.name_server, chance)
            running = asyncio.create_task(load.run())
            await lines(400, load)
            if kills == "backup":
                await shop.kill_while_running(
                    shop.command("create"), shop.backups / "lock", chance.random() * 0.2
                )
            # These are acknowledged before the backup begins, others while it runs.
            acknowledged |= load.acknowledged
            backup = asyncio.create_task(shop.run(*shop.command("create")))
            if kills == "broker":
                await asyncio.sleep(chance.random() * 0.5)
                await shop.servers.kill()
            await backup
            load.stop()
            await running
            if kills == "broker":
                await shop.servers.start()
        assert "is whole" in await shop.run(*shop.command("verify"))
        restore = shop.command("restore", store="again")
        for _ in range(3):
            await shop.kill_while_running(
                restore, tmp_path / "again" / "store", chance.random() * 0.3
            )
            if not (tmp_path / "again/store/restore.unfinished").exists():
                break
        else:
            await shop.run(*restore)
    finally:
        await shop.servers.stop()

    restored = ServerProcess(str(tmp_path / "again"), settings=SETTINGS)
    await restored.start()
    try:
        stored = await shop.stored(restored.name_server)
    finally:
        await restored.stop()
    found = {
        (queue.topic, queue.queue_id, offset): body for (queue, offset), body in stored.items()
    }
    for (queue, offset), body in acknowledged.items():
        assert found.get((queue.topic, queue.queue_id, offset)) == body, (queue, offset)
    assert len(set(found.values())) == len(found), "a message is there twice"


@pytest.mark.timeout(120)
async def test_the_broker_does_not_start_on_a_half_restored_store(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    root = tmp_path / "data" / "store"
    root.mkdir(parents=True)
    (root / "restore.unfinished").touch()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cometmq.broker", "-c"),
        shop.command("create")[-1],
        stderr=asyncio.subprocess.PIPE,
    )
    _, error = await process.communicate()
    assert process.returncode == 1
    assert b"a restore has not finished. Repeat `cometmq backup restore`" in error
