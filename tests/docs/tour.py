"""Which modules of the package a message meets: one send, one pull and one consumed message, traced call by call."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import cometmq
from cometmq.client import Message, PushConsumerConfig, ReceivedMessage
from cometmq.client.aio import Producer, PullConsumer, PushConsumer
from cometmq.testing import cluster
from cometmq.testing.cluster import Cluster

PACKAGE = str(Path(cometmq.__file__).parent) + "/"
OURS = PACKAGE + "testing/"
FROM_START = PushConsumerConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
SECONDS_MAX = 30


class Recorder:
    """Notes the file of every function of the package that is called, in all threads, while it is switched on."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._is_on = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Threads that are started inside are watched, too."""
        threading.setprofile(self._called)
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextmanager
    def on(self, into: set[str]) -> Iterator[None]:
        self._files = into
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        # Functions are optimised code. Bodies of modules and classes, which run at an import, are not.
        if self._is_on and event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            file = frame.f_code.co_filename
            if file.startswith(PACKAGE) and not file.startswith(OURS):
                self._files.add(file[len(PACKAGE) :])


def trace() -> dict[str, set[str]]:
    """Modules by what was done: ``send``, ``pull``, ``consume``."""
    _forget()
    recorder = Recorder()
    found: dict[str, set[str]] = {"send": set(), "pull": set(), "consume": set()}
    with recorder.installed(), cluster() as servers:
        asyncio.run(_journey(servers, "Tour", recorder, found))
    return found


def _forget() -> None:
    """What earlier tests of this process have left in caches, so that all is entered that a new process enters."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "cometmq":
            for value in vars(module).values():
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()


async def _journey(
    servers: Cluster, topic: str, recorder: Recorder, found: dict[str, set[str]]
) -> None:
    name_servers = servers.name_servers
    async with (
        Producer(f"send-{topic}", name_servers=name_servers) as producer,
        PullConsumer(f"pull-{topic}", name_servers=name_servers) as puller,
    ):
        with recorder.on(found["send"]):
            sent = await producer.send(Message(topic=topic, body=b"1", tags="a", keys=["k"]))
        queue = sent.queue
        with recorder.on(found["pull"]):
            # The second message is not there yet: the broker parks the pull until it is.
            waiting = asyncio.create_task(
                puller.pull(queue, sent.queue_offset + 1, wait_seconds=10)
            )
            await _is_parked(servers)
            await producer.send(Message(topic=topic, body=b"2", tags="a"), queue=queue)
            assert len((await waiting).messages) == 1
        with recorder.on(found["consume"]):
            await _consume(name_servers, topic)


async def _is_parked(servers: Cluster) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not len(servers.servers.broker.rooms.pull.long_polling):
            await asyncio.sleep(0.01)


async def _consume(name_servers: str, topic: str) -> None:
    arrived: asyncio.Queue[bytes] = asyncio.Queue()

    async def listener(message: ReceivedMessage) -> None:
        arrived.put_nowait(message.body)
        if message.body == b"2" and not message.reconsume_times:
            raise ValueError("once more, please")

    async with PushConsumer(
        f"group-{topic}", listener=listener, name_servers=name_servers, config=FROM_START
    ) as consumer:
        consumer.subscribe(topic)
        bodies = [await asyncio.wait_for(arrived.get(), SECONDS_MAX) for _ in range(2)]
        assert sorted(bodies) == [b"1", b"2"]
