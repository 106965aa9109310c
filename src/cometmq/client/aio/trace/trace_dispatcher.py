"""Sends trace records to their topic, in the background.

    append() ──bounded queue──> one task: encodes a batch ──inner producer──> trace topic

Whatever goes wrong here is counted and logged, and affects neither sends nor consumption. The inner producer has its
own connections and is never traced itself.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from cometmq.base.errors import CometError, UsageError
from cometmq.client.client_config import DEFAULT_INSTANCE, ClientConfig
from cometmq.client.core.send.send_result import SendResult
from cometmq.client.producer_config import ProducerConfig
from cometmq.client.trace_config import TraceConfig
from cometmq.model.messages.message import Message
from cometmq.model.names import GROUP_BYTES_MAX
from cometmq.model.trace import TraceRecord, encode_trace, trace_keys

logger = logging.getLogger("cometmq.client")

BODY_BYTES_MAX: Final = 128_000
KEYS_BYTES_MAX: Final = 16_000
"""All properties of a message must stay below 32 KiB."""

SEND_MS: Final = 5_000
CLOSE_SECONDS_MAX: Final = 5.0
GROUP_PREFIX: Final = "_INNER_TRACE_PRODUCER"

_numbers = itertools.count(1)


class TraceProducer(Protocol):
    """The part of a producer that is used."""

    async def start(self) -> None: ...

    async def send(self, message: Message) -> SendResult: ...

    async def close(self) -> None: ...


class MakeProducer(Protocol):
    def __call__(self, group: str, *, config: ProducerConfig) -> TraceProducer: ...


class TraceDispatcher:
    """Args:
    kind: PRODUCE or CONSUME; part of the inner producer's group name.
    """

    def __init__(
        self,
        group: str,
        kind: str,
        config: TraceConfig,
        client: ClientConfig,
        make_producer: MakeProducer,
    ) -> None:
        self._config = config
        self._make = _maker(group, kind, client, make_producer)
        self._waiting: deque[TraceRecord] = deque()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._is_closing = False
        self._reported = 0
        self.sent = 0
        self.dropped = 0
        """Records that did not fit into the queue, or could not be written or sent."""

    @property
    def topic(self) -> str:
        return self._config.trace_topic

    def start(self) -> None:
        """Start the task; earlier records are waiting for it."""
        if self._task is None:
            self._is_closing = False
            self._loop = asyncio.get_running_loop()
            self._task = self._loop.create_task(self._run(), name="cometmq-client-trace")

    def append(self, record: TraceRecord) -> None:
        """Queue a record, or drop it if too many are waiting. Returns at once; any thread may call it."""
        with self._lock:
            if len(self._waiting) >= self._config.queue_max:
                self.dropped += 1
                return
            self._waiting.append(record)
            is_full = len(self._waiting) == self._config.batch_max
        if is_full and self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._news.set)
            except RuntimeError:
                logger.debug("trace record after the end of the event loop")

    async def close(self) -> None:
        """Send waiting records, for at most a few seconds, and stop."""
        task, self._task = self._task, None
        if task is None:
            return
        self._is_closing = True
        self._news.set()
        await asyncio.wait([task], timeout=CLOSE_SECONDS_MAX)
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        self._loop = None
        with self._lock:
            self.dropped += len(self._waiting)
            self._waiting.clear()
        self._report()

    async def _run(self) -> None:
        # Connecting may fail or take long: this task deals with it, not the traced client.
        producer: TraceProducer | None = None
        try:
            while True:
                if not self._is_closing and len(self._waiting) < self._config.batch_max:
                    await self._wait()
                is_last = self._is_closing
                try:
                    if producer is None:
                        producer = await _started(self._make())
                    await self._flush(producer)
                except CometError as error:
                    logger.warning("no trace producer topic=%s reason=%s", self.topic, error)
                except Exception:
                    logger.exception("trace failed topic=%s", self.topic)
                self._report()
                if is_last:
                    return
        finally:
            if producer is not None:
                await producer.close()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._config.flush_interval_ms / 1000):
                await self._news.wait()
        except TimeoutError:
            pass
        self._news.clear()

    async def _flush(self, producer: TraceProducer) -> None:
        while batch := self._take():
            travelling = batches(batch)
            self._drop(len(batch) - sum(len(records) for records, _ in travelling))
            for records, body in travelling:
                keys = _bounded(trace_keys(records))
                try:
                    await producer.send(Message(topic=self.topic, body=body, keys=keys))
                    self.sent += len(records)
                except CometError as error:
                    self._drop(len(records))
                    logger.warning("trace not sent topic=%s reason=%s", self.topic, error)

    def _take(self) -> list[TraceRecord]:
        with self._lock:
            count = min(len(self._waiting), self._config.batch_max)
            return [self._waiting.popleft() for _ in range(count)]

    def _drop(self, count: int) -> None:
        # Several threads increment it.
        with self._lock:
            self.dropped += count

    def _report(self) -> None:
        if self.dropped > self._reported:
            logger.warning(
                "trace records dropped topic=%s count=%d in_all=%d",
                self.topic,
                self.dropped - self._reported,
                self.dropped,
            )
            self._reported = self.dropped


def batches(records: list[TraceRecord]) -> list[tuple[list[TraceRecord], bytes]]:
    """Groups of records and their text. A record that cannot be encoded, or is too long, is left out."""
    found: list[tuple[list[TraceRecord], bytes]] = []
    together: list[TraceRecord] = []
    body = b""
    for record in records:
        try:
            text = encode_trace(record).encode()
        except (UsageError, UnicodeEncodeError) as error:
            logger.warning("trace record cannot be written reason=%s", error)
            continue
        if len(text) > BODY_BYTES_MAX:
            continue
        if together and len(body) + len(text) > BODY_BYTES_MAX:
            found.append((together, body))
            together, body = [], b""
        together.append(record)
        body += text
    if together:
        found.append((together, body))
    return found


def _bounded(keys: list[str]) -> list[str]:
    """As many keys as fit. Ids come before the keys of their message, so the last records lose theirs first."""
    kept: list[str] = []
    size = 0
    for key in keys:
        size += len(key.encode("utf-8", "replace")) + 1
        if size > KEYS_BYTES_MAX:
            break
        kept.append(key)
    return kept


async def _started(producer: TraceProducer) -> TraceProducer:
    await producer.start()
    return producer


def _maker(
    group: str, kind: str, client: ClientConfig, make_producer: MakeProducer
) -> Callable[[], TraceProducer]:
    number = next(_numbers)
    tail = f"-{kind}-{os.getpid()}-{number}"
    room = GROUP_BYTES_MAX - len(GROUP_PREFIX) - len(tail) - 1
    inner_group = f"{GROUP_PREFIX}-{group[:room]}{tail}"
    # A separate name if the traced client's is set, because the settings differ. RocketMQ's trace has no namespace.
    name = client.instance_name
    inner_name = name if name == DEFAULT_INSTANCE else f"{name}-trace-{number}"
    config = ProducerConfig(
        client=replace(client, namespace="", instance_name=inner_name),
        send_timeout_ms=SEND_MS,
        message_bytes_max=BODY_BYTES_MAX,
    )
    return lambda: make_producer(inner_group, config=config)
