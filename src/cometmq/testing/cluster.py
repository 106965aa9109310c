"""A real cluster inside a test: name server and brokers on free ports, stores in a temporary directory.

    async with cluster() as servers: ...     # on the test's own event loop
    with cluster() as servers: ...           # on a separate loop, in a background thread
    async with cluster(masters=2, slaves=1) as servers:
        await servers.kill(servers.masters[0])

``servers.name_servers`` is the address for clients. On exit everything is stopped and removed, and a task, thread or
open file that the servers left behind is an error.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from cometmq.base.errors import CometError, UsageError

if TYPE_CHECKING:
    from cometmq.broker.server import Broker
    from cometmq.standalone import Place, Standalone

START_SECONDS_MAX = 30.0
ROLE_SECONDS_MAX = 20.0
GROUPS_MAX = 16
SLAVES_MAX = 8
POLL_SECONDS = 0.005

T = TypeVar("T")

_SETTINGS = {
    # Small files: a test fills them quickly, and an idle broker does not fill a file system without sparse files.
    "mappedFileSizeCommitLog": str(16 * 1024 * 1024),
    "mappedFileSizeConsumeQueue": str(20 * 1000),
    "maxHashSlotNum": "5000",
    "maxIndexNum": "20000",
    # A test must not fail because its machine is busy; who tests refusals switches them on.
    "brokerFastFailureEnable": "false",
}


class ServersLeaked(CometError):
    """The servers left something behind; the message names it."""


def cluster(
    *,
    masters: int = 1,
    slaves: int = 0,
    controller: bool = False,
    settings: Mapping[str, str] | None = None,
    data_directory: str | None = None,
) -> Cluster:
    """A cluster for one test, not yet started.

    Args:
        masters: number of broker groups.
        slaves: slaves in each group. With any, masters are SYNC_MASTER unless ``settings`` say otherwise.
        controller: whether a controller decides who is the master of each group, and replaces a master that is lost.
        settings: ``broker.conf`` keys that override the defaults, for all brokers.
        data_directory: keep the data here instead of in a temporary directory, for example to restart on it.

    Raises:
        UsageError: a number of brokers that makes no cluster.
    """
    if not 1 <= masters <= GROUPS_MAX or not 0 <= slaves <= SLAVES_MAX:
        raise UsageError(
            f"a cluster has 1 to {GROUPS_MAX} masters with up to {SLAVES_MAX} slaves each, not {masters} with {slaves}"
        )
    return Cluster(
        masters=masters,
        slaves=slaves,
        has_controller=controller,
        settings=settings or {},
        data_directory=data_directory,
    )


class Cluster:
    """Use it as a context manager, ``with`` or ``async with``."""

    def __init__(
        self,
        *,
        settings: Mapping[str, str],
        data_directory: str | None,
        masters: int = 1,
        slaves: int = 0,
        has_controller: bool = False,
    ) -> None:
        self._has_controller = has_controller
        self._masters = masters
        self._slaves = slaves
        self._settings = {**_SETTINGS, **settings}
        self._stopped: dict[Broker, Place] = {}
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

    @property
    def brokers(self) -> list[Broker]:
        """Those that run, group by group."""
        return self.servers.brokers

    @property
    def masters(self) -> list[Broker]:
        """Those of ``brokers`` that lead now."""
        return [broker for broker in self.brokers if not _is_slave(broker)]

    @property
    def slaves(self) -> list[Broker]:
        return [broker for broker in self.brokers if _is_slave(broker)]

    def group_of(self, broker: Broker) -> list[Broker]:
        """The running brokers with its name, itself included."""
        return self.servers.group_of(broker)

    async def stop(self, broker: Broker) -> None:
        """Stop one broker gracefully."""
        self._release(broker)
        await broker.stop()

    async def kill(self, broker: Broker) -> None:
        """Stop one broker as others see the death of its process: connections break, requests stay unanswered, and the
        name server is told nothing. Its files are closed properly.
        """
        self._release(broker)
        await broker.kill()

    async def start(self, broker: Broker, *, role: str | None = None) -> Broker:
        """Start a broker again that was stopped or killed, on its data.

        Args:
            role: a ``brokerRole``. None: the one that it had, but SLAVE if another one leads its group by now.

        Returns:
            The broker that runs now, on another port.
        """
        place = self._stopped.pop(broker, None)
        if place is None:
            raise UsageError(f"{broker!r} was not stopped here")
        if self._has_controller:
            if role is not None:
                raise UsageError("the controller decides who is the master: give no role")
        elif role is None and any(
            self.servers.place_of(one).group == place.group for one in self.masters
        ):
            role = "SLAVE"
        return await self.servers.start_broker(place, role=role)

    async def promote(self, slave: Broker) -> None:
        """Make a slave the master of its group; a master that runs becomes its slave, and nothing is lost.

        Raises:
            UsageError: it is no slave.
            TimeoutError: a broker does not get into its role.
        """
        if not _is_slave(slave):
            raise UsageError(f"{slave!r} is no slave")
        if self._has_controller:
            async with asyncio.timeout(ROLE_SECONDS_MAX):
                await self._elect(slave)
                await _until(lambda: slave.role.is_settled and not _is_slave(slave))
                await self.servers.wait_for_slaves()
            return
        role = (
            "ASYNC_MASTER" if self._settings.get("brokerRole") == "ASYNC_MASTER" else "SYNC_MASTER"
        )
        async with asyncio.timeout(ROLE_SECONDS_MAX):
            for other in self.group_of(slave):
                if not _is_slave(other):
                    await _hand_over(other, slave)
            slave.live.update({"brokerRole": role})
            await _until(lambda: slave.role.is_settled)
            await self.servers.wait_for_slaves()

    async def _elect(self, broker: Broker) -> None:
        """As an operator does it."""
        from cometmq.protocol.codes import RequestCode
        from cometmq.protocol.command import Command
        from cometmq.protocol.fields import encode_fields
        from cometmq.protocol.headers.controller import ElectMasterHeader
        from cometmq.remoting.client import RemotingClient

        identity = broker.live.current.identity
        header = ElectMasterHeader(
            cluster_name=identity.cluster_name,
            broker_name=identity.broker_name,
            broker_id=identity.slave_id,
            designate_elect=True,
        )
        client = RemotingClient(sign=broker.access.sign)
        try:
            reply = await client.call(
                str(self.servers.controller_address),
                Command(RequestCode.CONTROLLER_ELECT_MASTER, encode_fields(header)),
            )
        finally:
            await client.close()
        if reply.code:
            raise UsageError(f"{broker!r} is not elected: {reply.remark}")

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """In a test without an event loop: run ``servers.kill(...)`` and the like in the servers' thread."""
        if self._loop is None:
            raise UsageError("the cluster runs on your own event loop: await it")
        return self._in_thread(coroutine)

    async def __aenter__(self) -> Self:
        # Imported here, because pytest imports this module in every run through the plugin.
        from cometmq.standalone import Standalone

        self._directory = self._given_directory or tempfile.mkdtemp(prefix="cometmq-test-")
        self._tasks_before = asyncio.all_tasks()
        self._threads_before = set(threading.enumerate())
        self._servers = Standalone(
            self._directory,
            namesrv_port=0,
            broker_port=0,
            broker_settings=self._settings,
            masters=self._masters,
            slaves=self._slaves,
            has_controller=self._has_controller,
            controller_port=0,
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
        self._stopped.clear()
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

    def _in_thread(self, coroutine: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return future.result(START_SECONDS_MAX)

    def _release(self, broker: Broker) -> None:
        if broker not in self.brokers:
            raise UsageError(f"{broker!r} does not run here")
        self._stopped[broker] = self.servers.release(broker)

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


def _is_slave(broker: Broker) -> bool:
    return broker.live.current.identity.is_slave


async def _hand_over(master: Broker, slave: Broker) -> None:
    """Make the master a slave, which takes no more sends, and wait until the other one has all of its log."""
    master.live.update({"brokerRole": "SLAVE"})
    await _until(lambda: master.role.is_settled)
    await _until(lambda: slave.core.store.max_physical >= master.core.store.max_physical)


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - there is nobody who would tell
        await asyncio.sleep(POLL_SECONDS)


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        # The descriptor used for the listing itself is closed by now.
        return ""
