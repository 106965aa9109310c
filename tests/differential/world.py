"""One implementation in a process of its own: carries out scenarios, and tells everything that could be seen.

    COMETMQ_IMPL=python python -m tests.differential.world    # scenarios on standard input, outcomes on standard output

The clock is a fake, the files are real: the twins write into mapped memory, as in production.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import pickle
import random
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, BinaryIO, Final, NamedTuple, cast

from tests.differential.calls import Calls, answers
from tests.differential.scenario import ACCOUNTS, Judge, Leave, Pass, Restart, Scenario, Step

from cometmq.access.accounts.account import Accounts, User, UserStatus, UserType
from cometmq.access.accounts.account_judge import AccountJudge
from cometmq.access.accounts.changes import merge_acl
from cometmq.access.door.access_guard import AccessGuard
from cometmq.access.rules.request_rules import RULES
from cometmq.base.disk import SystemFiles
from cometmq.protocol.bodies.auth import Acl, Policy, PolicyEntry
from cometmq.remoting import turn as turn_module
from cometmq.remoting.connection import Connection
from cometmq.remoting.endpoint import Endpoint
from cometmq.remoting.remoting_config import ConnectionLimits
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles
from cometmq.testing.memory_broker import MemoryBroker
from cometmq.testing.network.fake_network import MemoryNetwork
from cometmq.testing.network.simulated_loop import SimulatedLoop

TURNS: Final = 6
"""Of the loop, after which everything that needs no time has been done."""
PROCESS_LOGS: Final = "cometmq"
ACCESS_LOG: Final = "cometmq.access"
MEMORY_BYTES_MIN: Final = 1 << 30


class Outcome(NamedTuple):
    replies: list[dict[int, bytes]]
    """What the peers were sent, step by step."""
    closed: dict[int, str]
    """Connections that the broker closed, by number, and why."""
    errors: list[str]
    """Lines of the log that tell of something broken, or of a request that accounts refused."""
    files: dict[str, bytes]
    failures: list[str]
    """What went wrong in callbacks of the loop."""
    callers: list[str]
    """Whose the last request of the peer was that a step was about."""


class Transport(asyncio.Transport):
    """Takes everything at once."""

    def __init__(self, port: int) -> None:
        # Addresses of both sizes stand in records.
        is_v6 = port % 4 == 3
        peer = ("2001:db8::7", port, 0, 0) if is_v6 else ("10.0.0.7", port)
        super().__init__({"peername": peer})
        self.written = bytearray()
        self.is_gone = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing waits here."""

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: Any) -> None:
        self.written += data

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        for data in list_of_data:
            self.written += data

    def pause_reading(self) -> None:
        """The scenario goes on: a transport may deliver once more after it was told to pause."""

    def resume_reading(self) -> None:
        return None

    def is_closing(self) -> bool:
        return self.is_gone

    def close(self) -> None:
        self.is_gone = True

    def abort(self) -> None:
        self.is_gone = True


class World:
    def __init__(self, asked: Scenario, directory: Path) -> None:
        self._steps = asked.steps
        self._waits_for_disk = asked.settings.get("flushDiskType") == "SYNC_FLUSH"
        self._directory = directory
        clock = FakeClock()
        self.loop = SimulatedLoop(clock, MemoryNetwork(Random(0)))
        self.broker = MemoryBroker(
            {**asked.settings, "storePathRootDir": str(directory)},
            clock=clock,
            files=cast(FaultyFiles, SystemFiles()),
        )
        self.broker.flush_on_demand()
        self._judge = (
            AccountJudge(accounts(()), RULES, cluster="C49") if asked.has_accounts else None
        )
        self._guard: AccessGuard | None = None
        self._callers: list[str] = []
        self._ends: dict[int, tuple[Connection, Transport]] = {}
        self._numbers = 0
        self._closed: dict[int, str] = {}
        self._number_of: dict[Connection, int] = {}

    async def run(self) -> Outcome:
        self._listen()
        replies = []
        for step in self._steps:
            await self._step(step)
            replies.append(self._written())
        await self._stop()
        return Outcome(
            replies,
            self._closed,
            _errors.lines.copy(),
            _files(self._directory),
            [repr(failure) for failure in self.loop.failures],
            self._callers,
        )

    def _listen(self) -> None:
        if self._judge is not None:
            self._guard = AccessGuard(self._judge)
            self.broker.ports.guard(self._guard.guard, vouch=self._guard.vouch)
        self._endpoint = Endpoint(self.broker.ports.main, ConnectionLimits(), self._gone)

    async def _stop(self) -> None:
        for peer in list(self._ends):
            self._leave(peer)
        await self._endpoint.stop(0.0)
        await self.broker.stop()

    async def _step(self, step: Step) -> None:
        if isinstance(step, Restart):
            await self._stop()
            self.broker.open()
            self.broker.flush_on_demand()
            self._listen()
        elif isinstance(step, Pass):
            self.broker.advance(step.seconds)
            await self._settle()
        elif isinstance(step, Leave):
            self._leave(step.peer)
            await self._settle()
        elif isinstance(step, Judge):
            if self._judge is not None and self._guard is not None:
                self._judge.accounts = accounts(step.disabled)
                self._guard.forget_all()
        else:
            for piece in step.pieces:
                connection, transport = self._end(step.peer)
                if not transport.is_gone:
                    _receive(connection, piece)
                if not step.is_one_turn:
                    await self._settle()
            await self._settle()
            if self._guard is not None and step.peer in self._ends:
                self._callers.append(self._guard.account_of(self._ends[step.peer][0]))

    async def _settle(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)
            self.broker.advance(0)

    def _end(self, peer: int) -> tuple[Connection, Transport]:
        if peer not in self._ends:
            self._numbers += 1
            transport = Transport(40000 + self._numbers)
            connection = Connection(self._endpoint, is_accepted=True)
            self._number_of[connection] = self._numbers
            connection.connection_made(transport)
            self._ends[peer] = connection, transport
        return self._ends[peer]

    def _leave(self, peer: int) -> None:
        if (end := self._ends.pop(peer, None)) is not None:
            connection, transport = end
            if not transport.is_gone:
                connection.eof_received()
            self._note(connection)
            connection.connection_lost(None)

    def _written(self) -> dict[int, bytes]:
        found = {}
        for peer, (connection, transport) in list(self._ends.items()):
            if transport.written:
                found[peer] = self._in_order(bytes(transport.written))
                transport.written.clear()
            if transport.is_gone:
                # The next bytes come over another connection.
                del self._ends[peer]
                self._note(connection)
                connection.connection_lost(None)
        return found

    def _in_order(self, data: bytes) -> bytes:
        """A reply that waits for the disk may go before or after one that does not: peers look at its number."""
        if not self._waits_for_disk:
            return data
        frames, at = [], 0
        while at < len(data):
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            frames.append(data[at:end])
            at = end
        return b"".join(sorted(frames))

    def _note(self, connection: Connection) -> None:
        self._closed[self._number_of[connection]] = connection.close_reason

    def _gone(self, connection: Connection) -> None:
        self.broker.ports.closed(connection)
        if self._guard is not None:
            self._guard.forget(connection)


def accounts(disabled: Iterable[str]) -> Accounts:
    users = {
        name: User(
            name,
            secret,
            UserType.SUPER if name == "root" else UserType.NORMAL,
            UserStatus.DISABLED if name in disabled else UserStatus.ENABLED,
        )
        for name, secret in ACCOUNTS.items()
    }
    found = Accounts(users)
    for name, resources in (("alice", ("Topic:*", "Group:*")), ("bob", ("Topic:T0",))):
        entries = [
            PolicyEntry(resource=resource, actions=["Pub", "Sub"], decision="Allow")
            for resource in resources
        ]
        found = merge_acl(found, f"User:{name}", Acl(policies=[Policy(entries=entries)]))
    return found


class _Errors(logging.Handler):
    """Keeps what servers log as errors, and whom they refused."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.ERROR and record.name != ACCESS_LOG:
            return
        reason = f": {record.exc_info[1]!r}" if record.exc_info else ""
        self.lines.append(f"{record.getMessage()}{reason}")


_errors: Final = _Errors()


def outcome(asked: Scenario) -> Outcome:
    """Carry out one scenario in a directory of its own."""
    random.seed(asked.seed)
    _errors.lines.clear()
    # Both have the same name for it, since brokers tell where their store is.
    before, scratch = Path.cwd(), tempfile.mkdtemp(prefix="differential-", dir=_memory())
    os.chdir(scratch)
    try:
        world = World(asked, Path("store"))
        try:
            return world.loop.run_until_complete(world.run())
        finally:
            world.loop.finish()
    finally:
        os.chdir(before)
        shutil.rmtree(scratch, ignore_errors=True)


def _memory() -> str | None:
    """A file system without a disk, where syncs take no time, if there is one with room."""
    memory = Path("/dev/shm")
    if memory.is_dir() and shutil.disk_usage(memory).free > MEMORY_BYTES_MIN:
        return str(memory)
    return None


def _receive(connection: Any, data: bytes) -> None:
    if isinstance(connection, asyncio.Protocol):
        connection.data_received(data)
        return
    while data:
        room = memoryview(connection.get_buffer(-1))
        part, data = data[: len(room)], data[len(room) :]
        room[: len(part)] = part
        connection.buffer_updated(len(part))


def _files(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def prepare() -> None:
    """Nothing in this process depends on real time, or goes to its log."""
    # How much one turn handles is a matter of the machine's speed, and none of this.
    assert hasattr(turn_module, "TURN_SECONDS")
    turn_module.TURN_SECONDS = math.inf  # type: ignore[misc]
    logger = logging.getLogger(PROCESS_LOGS)
    logger.propagate = False
    logger.addHandler(_errors)


def main(source: BinaryIO, target: BinaryIO) -> None:
    prepare()
    while True:
        try:
            asked = pickle.load(source)
        except EOFError:
            return
        found = answers(asked) if isinstance(asked, Calls) else outcome(asked)
        pickle.dump(tuple(found), target)
        target.flush()


if __name__ == "__main__":
    standard_output = sys.stdout.buffer
    # Whatever prints must not come between the answers.
    sys.stdout = sys.stderr
    main(sys.stdin.buffer, standard_output)
