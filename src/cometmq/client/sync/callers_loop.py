"""An event loop that runs in its caller's thread, and only while the caller waits.

For programs that do one thing at a time, in processes of their own: no thread changes hands for a call, and megabytes
are received by the thread that uses them. ``sync.loop`` is for clients that many threads share, and for those that do
something in the background: here nothing happens unless somebody waits.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from cometmq.client.errors import ClientClosed
from cometmq.client.sync import loop as loops

Params = ParamSpec("Params")
Result = TypeVar("Result")


class CallersLoop:
    """``run`` as often as need be, then ``close``. Not thread-safe."""

    def __init__(self) -> None:
        self._loop = asyncio.SelectorEventLoop()
        self._process = os.getpid()

    @property
    def is_usable(self) -> bool:
        """Neither closed nor that of the process this one was forked from."""
        return not self._loop.is_closed() and self._process == os.getpid()

    def run(
        self,
        function: Callable[Params, Coroutine[Any, Any, Result]],
        /,
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Result:
        """Call a coroutine function and wait for its end.

        Raises:
            UsageError: this thread runs an event loop.
            ClientClosed: the loop is closed, or belongs to the process this one was forked from.
        """
        loops.check_may_wait()
        if self._loop.is_closed():
            raise ClientClosed("the client is closed; make a new one")
        if self._process != os.getpid():
            raise loops.forked()

        async def catch_up_and_call() -> Result:
            # One turn first: of what happened while the loop stood still, servers may have closed connections.
            await asyncio.sleep(0)
            return await function(*args, **kwargs)

        task = self._loop.create_task(catch_up_and_call())
        try:
            return self._loop.run_until_complete(task)
        finally:
            # Interrupted, as by Ctrl-C: nobody waits for it any more.
            if not task.done():
                task.cancel()

    def close(self) -> None:
        """End what is left. A second call does nothing, nor does one in a fork: the connections are its parent's."""
        if not self.is_usable:
            return
        try:
            self._loop.run_until_complete(self._end())
        finally:
            self._loop.close()

    async def _end(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
        # Of looking up host names.
        await asyncio.get_running_loop().shutdown_default_executor()
