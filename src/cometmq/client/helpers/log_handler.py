"""Ships log records to a topic in the background: the application never waits for a broker or fails because of one.

    handler = TopicHandler("AppLogs", name_servers="127.0.0.1:9876")
    logging.getLogger().addHandler(handler)

    emit() ──bounded queue──> a thread with its own event loop and producer ──batches──> topic

Records of this library itself are left out: a failing send would log, and that log line would be sent in turn.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from cometmq.base.errors import CometError, UsageError
from cometmq.client.aio.send.producer import PartlySent, Producer
from cometmq.client.client_config import ClientConfig
from cometmq.client.core.send.send_result import SendResult
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.messages.message import Message
from cometmq.model.names import check_topic

OWN_LOGGER: Final = "cometmq"
BODY_BYTES_MAX: Final = 256 * 1024
PAUSE_SECONDS: Final = 1.0
"""Pause after a failed send."""


class LogProducer(Protocol):
    """The part of a producer that is used."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def send_all(self, messages: Iterable[Message]) -> list[SendResult]: ...


class TopicHandler(logging.Handler):
    """Sends a message for each record: the formatted line as body, the level as tag, the logger's name as key.

    Args:
        queue_max: maximum number of waiting records; further ones are dropped and counted in ``dropped``.
        flush_seconds: maximum time that a record waits for others to be sent with it.
        close_seconds: how long ``close``, and the exit of the program, wait for records to be sent.
        config: configuration of the producer; name servers, credentials, TLS.
    """

    def __init__(
        self,
        topic: str,
        *,
        name_servers: str | Sequence[str] | None = None,
        group: str = "cometmq-log-handler",
        level: int = logging.NOTSET,
        queue_max: int = 10_000,
        batch_max: int = 100,
        flush_seconds: float = 0.5,
        close_seconds: float = 5.0,
        config: ClientConfig | None = None,
        make_producer: Callable[[], LogProducer] | None = None,
    ) -> None:
        check_topic(topic)
        if queue_max < 1 or batch_max < 1 or flush_seconds <= 0:
            raise UsageError("queue_max, batch_max and flush_seconds must be above 0")
        super().__init__(level)
        self._topic = topic
        self._queue_max = queue_max
        self._batch_max = batch_max
        self._flush_seconds = flush_seconds
        self._close_seconds = close_seconds
        client = (config or ClientConfig()).with_name_servers(name_servers)
        self._make_producer: Callable[[], LogProducer] = make_producer or (
            lambda: Producer(group, config=ProducerConfig(client=client))
        )
        self._waiting: deque[Message] = deque()
        self._news = threading.Event()
        self._is_closing = False
        self._thread: threading.Thread | None = None
        self.sent = 0
        self.dropped = 0
        """Records that found the queue full or could not be sent."""

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the record, or drop it. Never waits, never raises."""
        if record.name == OWN_LOGGER or record.name.startswith(OWN_LOGGER + "."):
            return
        # Whatever this handler's thread logs, through any library, would feed back into it.
        if threading.current_thread() is self._thread:
            return
        try:
            message = self._message(record)
        except Exception:  # noqa: BLE001 - logging's own way to report a record that cannot be formatted
            self.handleError(record)
            return
        # `logging` holds the handler's lock around emit, so there is one writer at a time.
        if self._is_closing or len(self._waiting) >= self._queue_max:
            self.dropped += 1
            return
        self._waiting.append(message)
        if self._thread is None:
            # Not earlier: a program may fork between its configuration and its first record.
            self._thread = threading.Thread(
                target=self._run, name="cometmq-log-handler", daemon=True
            )
            self._thread.start()
        if len(self._waiting) >= self._batch_max:
            self._news.set()

    def close(self) -> None:
        """Send waiting records, for at most ``close_seconds``, and stop. ``logging.shutdown`` calls it at exit."""
        self._is_closing = True
        self._news.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(self._close_seconds)
            self.dropped += len(self._waiting)
            self._waiting.clear()
        super().close()

    def _message(self, record: logging.LogRecord) -> Message:
        body = self.format(record).encode("utf-8", "replace")[:BODY_BYTES_MAX]
        keys = "".join(letter if letter > " " else "_" for letter in record.name)
        tags = "".join(letter if letter > " " else "_" for letter in record.levelname)
        return Message(
            topic=self._topic, body=body or b"(empty)", tags=tags, keys=[keys] if keys else ()
        )

    def _run(self) -> None:
        try:
            asyncio.run(self._ship())
        except Exception as error:  # noqa: BLE001 - the end of a thread; logging it would come back here
            self.dropped += len(self._waiting)
            self._waiting.clear()
            self._is_closing = True
            print(f"cometmq log handler ended: {error!r}", file=sys.stderr)

    async def _ship(self) -> None:
        loop = asyncio.get_running_loop()
        producer: LogProducer | None = None
        deadline: float | None = None
        try:
            while True:
                if self._is_closing and deadline is None:
                    deadline = loop.time() + self._close_seconds
                if self._is_closing and (
                    not self._waiting or (deadline is not None and loop.time() >= deadline)
                ):
                    return
                if len(self._waiting) < self._batch_max and not self._is_closing:
                    await asyncio.to_thread(self._news.wait, self._flush_seconds)
                    self._news.clear()
                try:
                    if producer is None:
                        made = self._make_producer()
                        await made.start()
                        producer = made
                    while self._waiting:
                        await self._send(producer)
                except CometError:
                    # There is nobody to tell: a log line about it would wait in this same queue.
                    await asyncio.sleep(PAUSE_SECONDS if not self._is_closing else 0.1)
        finally:
            if producer is not None:
                await producer.close()

    async def _send(self, producer: LogProducer) -> None:
        count = min(len(self._waiting), self._batch_max)
        batch = [self._waiting.popleft() for _ in range(count)]
        try:
            await producer.send_all(batch)
            self.sent += len(batch)
        except PartlySent as error:
            self.sent += len(batch) - len(error.unsent)
            if isinstance(error.__cause__, UsageError):
                self.dropped += len(error.unsent)
            else:
                # Back to the front, in order: they may arrive twice, but are not lost.
                self._waiting.extendleft(reversed(error.unsent))
                raise
        except UsageError:
            self.dropped += len(batch)
