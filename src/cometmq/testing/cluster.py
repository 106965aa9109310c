"""A real cluster inside a test: name server and broker on free ports, store in a temporary directory.

    async with cluster() as servers: ...     # on the test's own event loop
    with cluster() as servers: ...           # on a separate loop, in a background thread

``servers.name_servers`` is the address for clients. On exit everything is stopped and removed, and a task, thread or
open file that the servers left behind is an error.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from cometmq.base.errors import CometError

if TYPE_CHECKING:
    from cometmq.standalone import Standalone

START_SECONDS_MAX = 30.0

# Small files: a test fills them quickly, and an idle broker does not fill a file system without sparse files.
_SMALL_FILES = {
    "mappedFileSizeCommitLog": str(16 * 1024 * 1024),
    "mappedFileSizeConsumeQueue": str(20 * 1000),
    "maxHashSlotNum": "5000",
    "maxIndexNum": "20000",
}


class ServersLeaked(CometError):
    """The servers left something behind; the message names it."""


def cluster(
    *, settings: Mapping[str, str] | None = None, data_directory: str | None = None
) -> Cluster:
    """A cluster for one test, not yet started.

    Args:
        settings: ``broker.conf`` keys that override the defaults.
        data_directory: keep the data here instead of in a temporary directory, for example to restart on it.
    """
    return Cluster(settings=settings or {}, data_directory=data_directory)


class Cluster:
    """Use it as a context manager, ``with`` or ``async with``."""

    def __init__(self, *, settings: Mapping[str, str], data_directory: str | None) -> None:
        self._settings = {**_SMALL_FILES, **settings}
        self._given_directory = data_directory
        self._directory = ""
        self._servers: Standalone | None = None
        self._tasks_before: set[asyncio.Task[Any]] = set()
        self._threads_before: set[threading.Thread] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def servers(self) -> Standalone:
        assert self._servers is not None, "the cluster runs only inside its with block"
        return self._servers

    @property
    def name_servers(self) -> str:
        return self.servers.name_server_address

    @property
    def broker_address(self) -> str:
        return self.servers.broker_address

    async def __aenter__(self) -> Self:
        # Imported here, because pytest imports this module in every run through the plugin.
        from cometmq.standalone import Standalone

        self._directory = self._given_directory or tempfile.mkdtemp(prefix="cometmq-test-")
        self._tasks_before = asyncio.all_tasks()
        self._threads_before = set(threading.enumerate())
        self._servers = Standalone(
            self._directory, namesrv_port=0, broker_port=0, broker_settings=self._settings
        )
        try:
            await self._servers.__aenter__()
        except BaseException:
            self._remove_directory()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.servers.__aexit__(kind, error, trace)
        self._servers = None
        leaked = self._leaks()
        self._remove_directory()
        # If the test failed, its own error says more than what it left behind.
        if leaked and error is None:
            raise ServersLeaked("; ".join(leaked))

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cometmq-cluster")
        self._thread.start()
        try:
            self._in_thread(self.__aenter__())
        except BaseException:
            self._stop_thread()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._in_thread(self.__aexit__(kind, error, trace))
        finally:
            self._stop_thread()

    def _in_thread(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        assert self._loop is not None
        future: Future[Any] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        future.result(START_SECONDS_MAX)

    def _stop_thread(self) -> None:
        assert self._loop is not None
        assert self._thread is not None
        pool_closed = asyncio.run_coroutine_threadsafe(
            self._loop.shutdown_default_executor(), self._loop
        )
        pool_closed.result(START_SECONDS_MAX)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None

    def _leaks(self) -> list[str]:
        current = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() - self._tasks_before if task is not current]
        threads = [
            thread
            for thread in set(threading.enumerate()) - self._threads_before
            # Other threads belong to the test or to a library that it uses.
            if thread.name.startswith("cometmq-")
        ]
        files = [
            target
            for link in Path("/proc/self/fd").iterdir()
            if (target := _target(link)).startswith(self._directory)
        ]
        return [
            *(f"task {task.get_name()} still runs: {task!r}" for task in tasks),
            *(f"thread {thread.name} still runs" for thread in threads),
            *(f"file {path} is still open" for path in files),
        ]

    def _remove_directory(self) -> None:
        if self._given_directory is None:
            shutil.rmtree(self._directory, ignore_errors=True)


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        # The descriptor used for the listing itself is closed by now.
        return ""
