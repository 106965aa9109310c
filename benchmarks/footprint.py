"""How small and how quick: resident memory, open files, time from process start to the first accepted send.

Starts ``mqnamesrv`` and ``mqbroker`` as a user would, with an empty store and with many topics.

    python benchmarks/footprint.py [--topics 10000]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import shutil
import tempfile
import time
from pathlib import Path

from processes.own_servers import process, write_files

from cometmq.base.errors import CometError
from cometmq.client.aio.send.producer import Producer
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient

QUEUES = 4
IN_FLIGHT = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topics", type=int, default=10_000)
    topics = parser.parse_args().topics
    directory = tempfile.mkdtemp(prefix="cometmq-footprint-")
    try:
        asyncio.run(_measure(Path(directory), topics))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def _measure(directory: Path, topics: int) -> None:
    files = write_files(directory)
    address = f"127.0.0.1:{files.namesrv_port}"
    with process("mqnamesrv", "-c", files.namesrv_conf) as namesrv:
        await _until_listening(files.namesrv_port)
        with process("mqbroker", "-n", address, "-c", files.broker_conf) as broker:
            _print("start to first accepted send, empty store", await _first_send(address, "First"))
            await asyncio.sleep(2)
            total = _rss_mb(namesrv.pid) + _rss_mb(broker.pid)
            _print("idle resident memory, name server", _rss_mb(namesrv.pid), "MB")
            _print("idle resident memory, broker", _rss_mb(broker.pid), "MB")
            _print("idle resident memory, both", total, "MB")
            started = time.perf_counter()
            await _fill(f"127.0.0.1:{files.broker_port}", topics)
            _print(
                f"creating {topics} topics and filling their queues", time.perf_counter() - started
            )
            await asyncio.sleep(2)
            _report("after filling", topics, namesrv.pid, broker.pid)
        with process("mqbroker", "-n", address, "-c", files.broker_conf) as broker:
            seconds = await _first_send(address, "Topic-0")
            _print(f"start to first accepted send, {topics} topics x {QUEUES} queues", seconds)
            await asyncio.sleep(2)
            _report("after a restart", topics, namesrv.pid, broker.pid)


async def _first_send(name_server: str, topic: str) -> float:
    started = time.perf_counter()
    while True:
        try:
            async with Producer("bench", name_servers=name_server) as producer:
                await producer.send(Message(topic=topic, body=b"x"))
            return time.perf_counter() - started
        except CometError:
            if time.perf_counter() - started > 60:
                raise
            await asyncio.sleep(0.02)


async def _fill(broker: str, topics: int) -> None:
    """Create the topics through the admin request and store one message in each queue."""
    client = RemotingClient()
    gate = asyncio.Semaphore(IN_FLIGHT)

    async def one(number: int) -> None:
        topic = f"Topic-{number}"
        async with gate:
            await _call(client, broker, RequestCode.UPDATE_AND_CREATE_TOPIC, _topic_ext(topic))
            for queue_id in range(QUEUES):
                queue = MessageQueue(broker_name="bench", queue_id=queue_id, topic=topic)
                await _call(client, broker, RequestCode.SEND_MESSAGE_V2, _send_ext(queue), b"x")

    await asyncio.gather(*map(one, range(topics)))
    await client.close()


async def _call(
    client: RemotingClient, address: str, code: int, ext: dict[str, str], body: bytes = b""
) -> None:
    # Making 40,000 files keeps the disk busy enough for flow control; a client comes again then.
    for _ in range(1000):
        reply = await client.call(address, Command(code, ext, body), timeout=60)
        if reply.code != ResponseCode.SYSTEM_BUSY:
            break
        await asyncio.sleep(0.05)
    if reply.code != ResponseCode.SUCCESS:
        raise SystemExit(f"request {code} was answered {reply.code}: {reply.remark}")


def _topic_ext(topic: str) -> dict[str, str]:
    return {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(QUEUES),
        "writeQueueNums": str(QUEUES),
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }


def _send_ext(queue: MessageQueue) -> dict[str, str]:
    return {
        "a": "bench",
        "b": queue.topic,
        "c": "TBW102",
        "d": str(QUEUES),
        "e": str(queue.queue_id),
        "f": "0",
        "g": "1700000000000",
        "h": "0",
        "i": "",
        "j": "0",
        "k": "false",
        "m": "false",
    }


async def _until_listening(port: int) -> None:
    for _ in range(500):
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.02)
    raise SystemExit(f"nothing listens on {port}")


def _rss_mb(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) / 1024


def _report(when: str, topics: int, namesrv: int, broker: int) -> None:
    label = f"{when}, {topics} topics x {QUEUES} queues"
    _print(f"resident memory, name server, {label}", _rss_mb(namesrv), "MB")
    _print(f"resident memory, broker, {label}", _rss_mb(broker), "MB")
    _print(f"open files, broker, {label}", sum(1 for _ in Path(f"/proc/{broker}/fd").iterdir()), "")


def _print(label: str, value: float, unit: str = "s") -> None:
    print(f"{label:85} {value:10.2f} {unit}", flush=True)


if __name__ == "__main__":
    main()
