"""How a server process runs: on uvloop where there is one, until it is told to end; systemd is told how it is."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeVar

from cometmq.base import logs
from cometmq.base.memory import give_big_blocks_back
from cometmq.monitor.service_manager import ServiceManager
from cometmq.remoting.new_loop import new_event_loop

# Requests leave no cycles behind, so the collector rarely finds anything: let it look less often (default 700).
_COLLECT_AFTER: Final = 50_000


class Server(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def is_alive(self) -> bool:
        """Whether a watchdog should leave it alone."""
        ...

    def dump(self) -> None:
        """Tell what it is doing, for SIGUSR1."""
        ...


AnyServer = TypeVar("AnyServer", bound=Server)


def run_server(make: Callable[[], AnyServer], greeting: Callable[[AnyServer], str]) -> None:
    """Run a server on a new event loop until SIGINT or SIGTERM. The greeting is printed once it is up."""
    run(_until_told(make, greeting))


async def _until_told(make: Callable[[], AnyServer], greeting: Callable[[AnyServer], str]) -> None:
    stop = end_signal()
    server = make()
    await server.start()
    settle()
    try:
        print(greeting(server), flush=True)
        with in_service(server.is_alive, server.dump):
            await stop.wait()
        print("stopping", flush=True)
    finally:
        await server.stop()


@contextmanager
def in_service(is_alive: Callable[[], bool], dump: Callable[[], None]) -> Iterator[None]:
    """Inside the block systemd knows that the server is up, its watchdog is fed, and SIGUSR1 makes a dump."""
    manager = ServiceManager(os.environ)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, dump)
    manager.ready(is_alive)
    try:
        yield
    finally:
        manager.stopping()
        loop.remove_signal_handler(signal.SIGUSR1)


def run(serving: Coroutine[Any, Any, None]) -> None:
    """Run to the end on a new event loop."""
    give_big_blocks_back()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(serving))


async def _serve(serving: Coroutine[Any, Any, None]) -> None:
    telling = asyncio.create_task(_tell_left_out())
    try:
        await serving
    finally:
        telling.cancel()
        logs.tell_left_out()


async def _tell_left_out() -> None:
    while True:
        await asyncio.sleep(logs.TELL_SECONDS)
        logs.tell_left_out()


def settle() -> None:
    """Call once all is loaded: what is there now stays, and the garbage collector need not look at it again.

    With 10,000 topics a full collection takes some 30 ms, in which nobody is served.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 10, 10)


def end_signal() -> asyncio.Event:
    """An event that SIGINT or SIGTERM sets. Ask before anything is started, or an early signal kills the process."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    return told
