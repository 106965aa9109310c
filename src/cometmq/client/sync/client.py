"""The common part of all blocking clients: an asyncio client, and the loop that runs it between start and close."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, ParamSpec, TypeVar

from cometmq.base.errors import UsageError
from cometmq.client.aio.instance.queries import Queries as AsyncQueries
from cometmq.client.blocks import Block
from cometmq.client.core.message_lookup import TIME_MS_MAX
from cometmq.client.errors import ClientClosed
from cometmq.client.sync import loop as loops
from cometmq.client.sync.loop import LoopThread
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

Params = ParamSpec("Params")
Result = TypeVar("Result")


class BlockingClient(Block):
    """Thread-safe. Must not be used in a thread that runs an event loop, because it would block it."""

    def __init__(self) -> None:
        self._loop: LoopThread | None = None
        # The first guards `_loop` briefly; the second is held for as long as a start or close takes.
        self._loop_lock = threading.Lock()
        self._life_lock = threading.Lock()

    @property
    def _is_running(self) -> bool:
        return self._loop is not None

    @property
    def _state(self) -> str:
        return "running" if self._is_running else "not running"

    def _start(self, start: Callable[[], Coroutine[Any, Any, None]]) -> None:
        loops.check_may_wait()
        if self._loop is not None and self._loop.is_abandoned:
            raise loops.forked()
        with self._life_lock:
            if self._loop is not None:
                # The asyncio client knows whether a second start is a mistake.
                self._loop.run(start)
                return
            loop = loops.acquire()
            try:
                with self._loop_lock:
                    self._loop = loop
                loop.run(start)
            except BaseException:
                self._leave(loop)
                raise

    def _close(
        self,
        close: Callable[Params, Coroutine[Any, Any, None]],
        /,
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> None:
        if self._loop is None or self._loop.is_abandoned:
            return
        self._loop.check_may_wait()
        with self._life_lock:
            loop = self._loop
            if loop is None:
                return
            try:
                loop.run(close, *args, **kwargs)
            finally:
                self._leave(loop)

    def _leave(self, loop: LoopThread) -> None:
        with self._loop_lock:
            self._loop = None
        loops.release(loop)

    def _run(
        self,
        function: Callable[Params, Coroutine[Any, Any, Result]],
        /,
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Result:
        """Call a coroutine function of the running asyncio client and wait for it."""
        loop = self._loop
        if loop is None:
            raise self._closed()
        return loop.run(function, *args, **kwargs)

    def _soon(self, start: Callable[[], asyncio.Future[Result]]) -> Future[Result]:
        """Start something on the loop of the running asyncio client without waiting."""
        loop = self._loop
        if loop is None:
            raise self._closed()
        if loop.is_abandoned:
            raise loops.forked()
        return loop.soon(start)

    def _ask(
        self,
        function: Callable[Params, Result],
        /,
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Result:
        """Call a plain function of the running asyncio client, on the loop's thread."""
        loop = self._loop
        if loop is None:
            raise self._closed()
        return self._on_loop(loop, function, *args, **kwargs)

    def _tell(
        self,
        function: Callable[Params, Result],
        /,
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Result:
        """Call a plain function of the asyncio client, whether or not it is running."""
        with self._loop_lock:
            loop = self._loop
            if loop is None:
                return function(*args, **kwargs)
        return self._on_loop(loop, function, *args, **kwargs)

    @staticmethod
    def _on_loop(
        loop: LoopThread,
        function: Callable[Params, Result],
        /,
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Result:
        if loop.is_current():
            return function(*args, **kwargs)

        async def call() -> Result:
            return function(*args, **kwargs)

        return loop.run(call)

    def _closed(self) -> ClientClosed:
        return ClientClosed(f"{self!r}: use it inside of `with`, or call start()")


class Queries(BlockingClient):
    """Queries that every client can send to brokers about stored messages: by id, by key, by position, by time."""

    def __init__(self, twin: AsyncQueries) -> None:
        super().__init__()
        self._queries = twin

    def view(self, message_id: str, *, topic: str | None = None) -> ReceivedMessage:
        """The message with an id.

        Args:
            message_id: an offset id, or a unique id (``message_id`` of a received message).
            topic: its topic; required to look up a unique id.

        Raises:
            UsageError: the text is not a message id, or it is a unique id and no topic is given.
            MessageNotFound: no broker has it, or no longer.
        """
        return self._run(self._queries.view, message_id, topic=topic)

    def query(
        self,
        topic: str,
        key: str,
        *,
        begin_ms: int = 0,
        end_ms: int = TIME_MS_MAX,
        count_max: int = 32,
    ) -> list[ReceivedMessage]:
        """Messages with a key that were stored between two times, newest first.

        All brokers of the topic are asked, each for up to ``count_max`` (at most 64).

        Raises:
            CometError: a broker could not be asked; a partial result is never returned as if it were complete.
        """
        return self._run(
            self._queries.query,
            topic,
            key,
            begin_ms=begin_ms,
            end_ms=end_ms,
            count_max=count_max,
        )

    def min_offset(self, queue: MessageQueue) -> int:
        """The first offset of a queue that still exists."""
        return self._run(self._queries.min_offset, queue)

    def max_offset(self, queue: MessageQueue) -> int:
        """The offset of the next message of a queue."""
        return self._run(self._queries.max_offset, queue)

    def offset_by_time(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The first offset stored at or after a time; a RocketMQ 4.9 broker returns the one stored closest to it."""
        return self._run(self._queries.offset_by_time, queue, timestamp_ms)

    def earliest_time(self, queue: MessageQueue) -> int | None:
        """When the first message of a queue was stored, in ms; None for an empty queue."""
        return self._run(self._queries.earliest_time, queue)


def check_is_plain(name: str, function: Callable[..., Any] | None) -> None:
    """Raises UsageError for a coroutine function: a blocking client has no user's event loop to run it on."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    ):
        raise UsageError(
            f"{name} must be a plain function; for an async def use the same client of cometmq.client.aio"
        )
