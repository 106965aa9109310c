"""The event loop that all blocking clients of a process share, in a dedicated thread.

    caller's thread            loop thread
    run(coroutine) ──inbox──>  a task
    waits for a lock <──────── released at its end

The thread starts with the first client and ends with the last one; the loop itself stays, so that a closed client can
be started again. Each call creates only the call object and one lock.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeVar

from cometmq.base.errors import UsageError
from cometmq.client.errors import ClientClosed
from cometmq.remoting.new_loop import new_event_loop

Params = ParamSpec("Params")
Result = TypeVar("Result")

POOL_THREADS_MAX: Final = 32
"""For user functions that the event loop must not wait for, except push listeners."""

SETTLE_TURNS: Final = 3
"""Iterations of the loop until closed connections are gone."""

EXIT_SECONDS_MAX: Final = 5.0

WAIT_SECONDS: Final = 0.1 if sys.platform == "win32" else -1
"""So long a caller waits in one go; -1: until the end of its call. On Windows no Ctrl-C ends the wait for a lock."""


class _Posted(Protocol):
    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """On the loop's thread."""
        ...

    def fail(self, error: Exception) -> None:
        """Called on any thread, when the loop has ended. Does nothing if the call is already done."""
        ...


class _Call(Generic[Result]):
    """A coroutine that a thread waits for."""

    __slots__ = ("context", "coroutine", "ended", "error", "is_over", "result", "task")

    def __init__(self, coroutine: Coroutine[Any, Any, Result]) -> None:
        self.coroutine = coroutine
        # Hooks see the caller's context variables.
        self.context = contextvars.copy_context()
        self.ended = threading.Lock()
        self.ended.acquire()
        self.is_over = False
        self.result: Result
        self.error: BaseException | None = None
        self.task: asyncio.Task[None] | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self.is_over:
            self.task = loop.create_task(self._carry_out(), context=self.context)

    async def _carry_out(self) -> None:
        try:
            self.result = await self.coroutine
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            self.error = error
        self.is_over = True
        self.ended.release()

    def fail(self, error: Exception) -> None:
        if not self.is_over:
            self.coroutine.close()
            self.error = error
            self.is_over = True
            self.ended.release()

    def cancel(self) -> None:
        """Called on the loop's thread: nobody is waiting any more."""
        if self.task is not None:
            self.task.cancel()
        elif not self.is_over:
            self.fail(ClientClosed("the call was given up"))


class _Soon(Generic[Result]):
    """A function that starts something on the loop; its result is copied to a future that any thread can wait for."""

    __slots__ = ("context", "future", "start", "started")

    def __init__(self, start: Callable[[], asyncio.Future[Result]]) -> None:
        self.start = start
        self.context = contextvars.copy_context()
        self.future: Future[Result] = Future()
        self.started: asyncio.Future[Result] | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.future.done():
            if self.future.cancelled():
                self.future.set_running_or_notify_cancel()
            return
        try:
            self.started = self.context.run(self.start)
        except Exception as error:  # noqa: BLE001 - handed to whoever has the future
            self.fail(error)
            return
        self.started.add_done_callback(self._copy)

    def cancel(self) -> None:
        """On the loop's thread."""
        if self.started is not None:
            self.started.cancel()

    def fail(self, error: Exception) -> None:
        if not self.future.done() and self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)

    def _copy(self, started: asyncio.Future[Result]) -> None:
        future = self.future
        if started.cancelled():
            future.cancel()
            future.set_running_or_notify_cancel()
        elif future.set_running_or_notify_cancel():
            if (error := started.exception()) is not None:
                future.set_exception(error)
            else:
                future.set_result(started.result())
        elif not started.cancelled():
            # Cancelled at the last moment: nobody will retrieve the error.
            started.exception()


class LoopThread:
    """Use ``run`` and ``soon`` between ``acquire`` and ``release``."""

    def __init__(self) -> None:
        self._loop = new_event_loop()
        self._pool: ThreadPoolExecutor | None = None
        self._thread: threading.Thread | None = None
        self._users = 0
        self._inbox: deque[_Posted] = deque()
        self._is_told = False
        self._is_open = False
        self._settling: asyncio.Task[None] | None = None
        self.is_abandoned = False
        """Whether this process is a fork of the one whose thread runs the loop."""

    def run(
        self,
        function: Callable[Params, Coroutine[Any, Any, Result]],
        /,
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Result:
        """Call a coroutine function on the loop and wait for it.

        An interrupt (Ctrl-C) ends the wait and cancels the call.

        Raises:
            UsageError: this thread runs an event loop.
            ClientClosed: the loop ended meanwhile, or belongs to the process from which this one was forked.
        """
        self.check_may_wait()
        call = _Call(function(*args, **kwargs))
        self._post(call)
        try:
            try:
                while not call.ended.acquire(True, WAIT_SECONDS):
                    pass
            except BaseException:
                self._call_soon(call.cancel)
                raise
            if call.error is not None:
                raise call.error
            return call.result
        finally:
            # The error references this frame; without this, the frame would reference the error.
            del call

    def soon(self, start: Callable[[], asyncio.Future[Result]]) -> Future[Result]:
        """Call a function on the loop without waiting; the returned future gets the result of the function's future.

        Cancelling the future cancels what was started.
        """
        posted = _Soon(start)
        future = posted.future

        def cancelled(future: Future[Result]) -> None:
            if future.cancelled():
                self._call_soon(posted.cancel)

        future.add_done_callback(cancelled)
        self._post(posted)
        return future

    def is_current(self) -> bool:
        """Whether this is the loop's own thread."""
        return asyncio._get_running_loop() is self._loop

    def check_may_wait(self) -> None:
        """Raises UsageError if waiting for the loop here would block an event loop, perhaps forever."""
        if asyncio._get_running_loop() is not None:
            raise _must_not_wait(self.is_current())

    def enter(self) -> None:
        """Add a user. Called under the process's lock."""
        self._users += 1
        if self._thread is not None:
            return
        # Clients compress, read files and call plain functions in threads.
        self._pool = ThreadPoolExecutor(POOL_THREADS_MAX, "cometmq-client-sync")
        self._loop.set_default_executor(self._pool)
        # A caller that posted at the very end of the last thread may have left the flag set.
        self._is_told = False
        self._is_open = True
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="cometmq-client-sync-loop", daemon=True
        )
        self._thread.start()

    def leave(self) -> None:
        """Remove a user; the last one ends the thread. Called under the process's lock."""
        self._users -= 1
        if self._users == 0:
            self.stop()

    def stop(self, seconds_max: float | None = None) -> None:
        """End the thread; callers that wait get ClientClosed or a cancellation."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._is_open = False
        self._call_soon(self._begin_settling)
        thread.join(seconds_max)
        while self._inbox:
            self._inbox.popleft().fail(ClientClosed("the last client was closed meanwhile"))
        if self._pool is not None:
            # Without waiting: one of its threads may be the one that closes the last client.
            self._pool.shutdown(wait=False)

    def close(self) -> None:
        """Close for good, at the end of the process."""
        self.stop(EXIT_SECONDS_MAX)
        if not self._loop.is_running():
            self._loop.close()

    def _post(self, posted: _Posted) -> None:
        self._inbox.append(posted)
        # The thread that ends the loop clears the flag before it empties the inbox, so one of the two sees this call.
        if not self._is_open or self.is_abandoned:
            posted.fail(self._closed())
        elif not self._is_told:
            self._is_told = True
            self._call_soon(self._take)

    def _take(self) -> None:
        # Cleared before the inbox is read, so nothing is overlooked.
        self._is_told = False
        inbox = self._inbox
        while inbox:
            inbox.popleft().begin(self._loop)

    def _call_soon(self, function: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            # The loop is closed, as at the end of the process: nothing is in progress any more.
            self._is_open = False

    def _begin_settling(self) -> None:
        self._settling = self._loop.create_task(self._settle())

    async def _settle(self) -> None:
        """Cancel what is left of clients that failed or were interrupted, then stop the loop."""
        for _ in range(SETTLE_TURNS):
            await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=EXIT_SECONDS_MAX)
        self._loop.stop()

    def _closed(self) -> ClientClosed:
        if self.is_abandoned:
            return forked()
        return ClientClosed("the client was closed meanwhile")


def acquire() -> LoopThread:
    """The process's running loop; return it with ``release``."""
    global _shared
    with _lock:
        if _shared is None:
            _shared = LoopThread()
        _shared.enter()
        return _shared


def release(loop: LoopThread) -> None:
    if loop.is_abandoned:
        return
    with _lock:
        loop.leave()


def check_may_wait() -> None:
    """Like ``LoopThread.check_may_wait``, for a client that has no loop yet."""
    if asyncio._get_running_loop() is not None:
        raise _must_not_wait(False)


def forked() -> ClientClosed:
    return ClientClosed(
        "the client was started before this process was forked from another; "
        "make and start one of its own in this process"
    )


def _must_not_wait(is_own_loop: bool) -> UsageError:
    if is_own_loop:
        return UsageError(
            "a blocking client was called on the thread of its own event loop, by a hook or a selector, "
            "which must not wait; do it in another thread"
        )
    return UsageError(
        "a blocking client was called in a thread that runs an event loop, and would stop it; "
        "use cometmq.client.aio with await, or asyncio.to_thread"
    )


_lock = threading.Lock()
_shared: LoopThread | None = None
_abandoned: Final[list[LoopThread]] = []


def _forget_after_fork() -> None:
    """The child has the loop but not its thread. It stays unused: closing it would affect the parent's connections."""
    global _lock, _shared
    _lock = threading.Lock()
    if _shared is not None:
        _shared.is_abandoned = True
        _abandoned.append(_shared)
        _shared = None


def _close_at_exit() -> None:
    global _shared
    with _lock:
        loop, _shared = _shared, None
    if loop is not None:
        loop.close()


if hasattr(os, "register_at_fork"):  # Windows forks no processes.
    os.register_at_fork(after_in_child=_forget_after_fork)
atexit.register(_close_at_exit)
