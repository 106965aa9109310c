"""``cometmq up --brokers N`` as a process: what it said, its further brokers, and how it ended."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.eventually import eventually
from tests.interop.servers import free_ports

from cometmq.client import ClientConfig, Message, ProducerConfig
from cometmq.client.aio import Producer, PullConsumer

SECONDS_MAX: Final = 60.0
SMALL: Final = ("--set", "mappedFileSizeCommitLog=1048576")


def ports_for(brokers: int) -> list[int]:
    """Of each broker. Those two below and one above are free as well."""
    offsets = [10 * number + more for number in range(brokers) for more in (-2, 0, 1)]
    return free_ports(*offsets)[1::3]


class Up:
    def __init__(self, directory: Path, brokers: int, ports: Sequence[int] = ()) -> None:
        self.brokers = brokers
        port = ports[0] if ports else 0
        self.command = [
            *(sys.executable, "-m", "cometmq.cli", "up", "--data", str(directory)),
            *("--namesrv-port", "0", "--broker-port", str(port), "--no-dashboard"),
            *("--brokers", str(brokers), *SMALL),
        ]
        self.lines: list[str] = []
        self.process: asyncio.subprocess.Process

    @property
    def name_server(self) -> str:
        return self.lines[0].split()[2]

    @property
    def addresses(self) -> dict[str, str]:
        """By name of the broker."""
        lines = [line.split() for line in self.lines if line.startswith("broker")]
        return {name: address for _, address, name in lines}

    async def begin(self, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.process = await asyncio.create_subprocess_exec(
            *self.command,
            *options,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )

    async def ready(self) -> None:
        assert self.process.stdout is not None
        async with asyncio.timeout(SECONDS_MAX):
            while not self.lines or not self.lines[-1].startswith("stop"):
                line = await self.process.stdout.readline()
                assert line, await self.complaint()
                self.lines.append(line.decode())

    async def complaint(self) -> str:
        """All that it says on standard error until its end."""
        assert self.process.stderr is not None
        async with asyncio.timeout(SECONDS_MAX):
            return (await self.process.stderr.read()).decode()

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(SECONDS_MAX):
            return await self.process.wait()

    def children(self) -> dict[str, int]:
        """Process ids of the further brokers, by name."""
        pid = self.process.pid
        try:
            found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return {}  # It has ended.
        words = {int(child): words_of(int(child)) for child in found}
        return {
            word[-1]: child for child, word in words.items() if word[1:2] == ["-m"] and word[3:]
        }


@asynccontextmanager
async def up(
    directory: Path,
    brokers: int,
    *options: str,
    ports: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Up]:
    one = Up(directory, brokers, ports)
    await one.begin(*options, environment=environment)
    try:
        await one.ready()
        yield one
    finally:
        children = one.children().values() if one.process.returncode is None else ()
        await one.end(signal.SIGKILL)
        await eventually(lambda: not any(map(is_running, children)), "no broker is left")


def is_running(pid: int) -> bool:
    """A zombie is none."""
    return bool(words_of(pid))


def words_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []


def producer_of(name_server: str, group: str = "senders") -> Producer:
    client = ClientConfig(name_servers=name_server, poll_name_server_millis=100)
    return Producer(group, config=ProducerConfig(client=client))


async def send_to_all(name_server: str, names: set[str]) -> list[bytes]:
    """Send to T until each of these brokers has got something, and consumers know; what was sent."""
    sent: list[bytes] = []
    reached: set[str] = set()
    async with producer_of(name_server) as producer:

        async def is_there() -> bool:
            body = b"%d" % len(sent)
            result = await producer.send(Message(topic="T", body=body))
            sent.append(body)
            reached.add(result.queue.broker_name)
            return reached == names

        await eventually(is_there, lambda: f"reached {reached}, not {names}")

    async def is_known() -> bool:
        return await brokers_with(name_server, "T") == names

    await eventually(is_known, "the name server knows that all have the topic")
    return sent


async def brokers_with(name_server: str, topic: str) -> set[str]:
    async with PullConsumer("lookers", name_servers=name_server) as consumer:
        return {queue.broker_name for queue in await consumer.queues(topic)}


async def bodies_of(name_server: str, topic: str) -> list[bytes]:
    found: list[bytes] = []
    async with PullConsumer("readers", name_servers=name_server) as consumer:
        for queue in await consumer.queues(topic):
            offset, end = 0, await consumer.max_offset(queue)
            while offset < end:
                result = await consumer.pull(queue, offset, count_max=1000)
                found += [message.body for message in result.messages]
                offset = result.next_offset
    return found
