"""A slave's connection to its master: carries out what ``follow`` decides, on the store's replica log.

It connects for as long as it is told to, tries again after a pause that grows with each failure, and logs once
why it cannot follow. What comes is appended at once, straight from the memory that the socket was read into; entering
it into the queues takes far longer and has a share of each turn of the loop. Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, cast

from cometmq.base.errors import CometError, CorruptFile, DiskFull, RemoteProtocolError
from cometmq.broker.replication.follow import (
    SILENCE_SECONDS,
    Append,
    CutTail,
    Follow,
    Instruction,
    Note,
    Reconnect,
    Refuse,
    Report,
    Say,
)
from cometmq.broker.replication.ha_wire import FrameReader, TransferReader, encode_report
from cometmq.model.address import split_address
from cometmq.store.log.replica_log import ReplicaLog

logger = logging.getLogger("cometmq.broker")

CONNECT_SECONDS_MAX: Final = 5.0
PAUSE_SECONDS: Final = 0.1
PAUSE_SECONDS_MAX: Final = 1.0
TICK_SECONDS: Final = 1.0
TURN_BYTES: Final = 2 * 1024 * 1024
"""What is taken from the master before others have their turn on the loop: some milliseconds."""


def _nothing() -> None:
    return None


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


F_contra = TypeVar("F_contra", contravariant=True)


class Following(Protocol[F_contra]):
    """What decides how a slave follows, over any number of connections. As ``follow.Follow``."""

    @property
    def is_following(self) -> bool: ...

    @property
    def shown_to(self) -> int | None:
        """How much of the log may be dispatched, and so read; None: all of it."""
        ...

    def connected(self, now: float) -> list[Instruction]: ...

    def came(self, piece: F_contra, now: float, /) -> list[Instruction]: ...

    def tick(self, now: float) -> list[Instruction]: ...

    def lost(self) -> None: ...


def _note_nothing(what: object) -> None:
    raise AssertionError(f"nobody keeps {what}")


@dataclass(frozen=True, slots=True)
class SlaveWire:
    """How a slave speaks to its master.

    Args:
        following: decides what follows from the frames that the reader makes.
        note: keeps what it says to keep. May raise CometError.
    """

    following: Following[Any]
    reader: Callable[[], FrameReader[Any]]
    encode_report: Callable[[int], bytes]
    note: Callable[[object], None] = _note_nothing


def plain_wire(
    replica: ReplicaLog, file_bytes: int, silence_seconds: float = SILENCE_SECONDS
) -> SlaveWire:
    """The default wire."""
    following = Follow(replica, file_bytes, silence_seconds)
    return SlaveWire(following, TransferReader, encode_report)


class SlaveLink:
    """Args:
    replica: where the log goes.
    file_bytes: the size of a log file, which must be the master's, too.
    wire: another one than the default.
    cut_tail: removes the log from an offset on, keeping a copy; the reason is for the operator.
    open_log: called before each try. A cut that failed may have left the log closed.
    on_agreed: called when the master is known to be the right one: both logs agree, or there is none here yet.
    on_lost: called before each new try: the master may be elsewhere by now.
    knock: called before each try: proves to the master that a broker is about to connect.
    tls: connect with it.
    """

    def __init__(
        self,
        replica: ReplicaLog,
        *,
        file_bytes: int,
        wire: SlaveWire | None = None,
        cut_tail: Callable[[int, str], None],
        open_log: Callable[[], None] = _nothing,
        on_agreed: Callable[[], None] = _nothing,
        on_lost: Callable[[], None] = _nothing,
        knock: Callable[[], Awaitable[None]] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._knock = knock
        self._tls = tls
        self._replica = replica
        self._wire = wire or plain_wire(replica, file_bytes)
        self._follow = self._wire.following
        self._cut_tail = cut_tail
        self._open_log = open_log
        self._on_agreed = on_agreed
        self._on_lost = on_lost
        self._has_agreed = False
        self._address: str | None = None
        self._task: asyncio.Task[None] | None = None
        self._connection: _Connection | None = None
        self._told = ""
        self._is_dispatching = False
        self.bytes_per_second = 0
        """Received in the last second."""
        self.read_ms = 0
        """When something came from the master last, as milliseconds since 1970."""
        self.wrote_ms = 0
        """The same for what was sent to it."""
        self._received_bytes = 0

    @property
    def master(self) -> str | None:
        """The master's replication address; None while nobody is followed."""
        return self._address

    @property
    def is_following(self) -> bool:
        """Connected, and both logs agree."""
        return self._connection is not None and self._follow.is_following

    def follow(self, address: str | None) -> None:
        """Follow the master at ``host:port``, or nobody."""
        if address == self._address:
            return
        self._address = address
        self._connection = None
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if address is not None:
            self._task = asyncio.get_running_loop().create_task(
                self._run(address), name="cometmq-follow"
            )

    async def stop(self) -> None:
        task = self._task
        self.follow(None)
        if task is not None:
            await asyncio.wait([task])

    async def _run(self, address: str) -> None:
        pause = PAUSE_SECONDS
        while True:
            try:
                was_following = await self._follow_once(address)
            except CometError as error:
                was_following = False
                self._tell(address, str(error))
            except OSError as error:
                was_following = False
                self._tell(address, f"cannot connect: {error}")
            except asyncio.CancelledError:
                raise
            except Exception:
                was_following = False
                logger.exception("following failed master=%s", address)
            pause = PAUSE_SECONDS if was_following else min(pause * 2, PAUSE_SECONDS_MAX)
            self._on_lost()
            await asyncio.sleep(pause)

    async def _follow_once(self, address: str) -> bool:
        """One connection from its begin to its end. Whether both logs agreed for a while."""
        loop = asyncio.get_running_loop()
        self._open_log()
        while self._replica.dispatch(self._follow.shown_to):  # noqa: ASYNC110 - others have their turn meanwhile
            # What cannot be dispatched is no reason to take more.
            await asyncio.sleep(0)
        if self._knock is not None:
            await self._knock()
        host, port = split_address(address)
        async with asyncio.timeout(CONNECT_SECONDS_MAX):
            _, protocol = await loop.create_connection(
                lambda: _Connection(self._came, self._wire), host, port, ssl=self._tls
            )
        connection = self._connection = protocol
        try:
            self._has_agreed = False
            self._carry_out(self._follow.connected(loop.time()), connection)
            connection.send_report()
            while not connection.ended.done():
                await asyncio.wait([connection.ended], timeout=TICK_SECONDS)
                self.bytes_per_second, self._received_bytes = self._received_bytes, 0
                self._carry_out(self._follow.tick(loop.time()), connection)
                connection.send_report()
            was_following = self._follow.is_following
            error = connection.ended.result()
            if error is not None:
                raise error
            if was_following:
                self._told = ""
            return was_following
        finally:
            connection.abort()
            if self._connection is connection:
                self._connection = None
            self._follow.lost()

    def _came(self, connection: _Connection, pieces: list[Any]) -> None:
        now = asyncio.get_running_loop().time()
        self.read_ms = _wall_ms()
        for piece in pieces:
            if connection.ended.done():
                break
            self._carry_out(self._follow.came(piece, now), connection)
        connection.send_report()
        self._dispatch_soon()

    def _carry_out(self, instructions: list[Instruction], connection: _Connection) -> None:
        for instruction in instructions:
            match instruction:
                case Append(offset, data):
                    try:
                        self._replica.append(offset, data)
                    except DiskFull as error:
                        connection.end(error)
                        return
                    self._received_bytes += len(data)
                case Report(offset):
                    self.wrote_ms = _wall_ms()
                    connection.report = offset
                case Say(words):
                    self.wrote_ms = _wall_ms()
                    connection.say(words)
                case Note(what):
                    try:
                        self._wire.note(what)
                    except CometError as error:
                        connection.end(error)
                        return
                case CutTail(offset, reason):
                    try:
                        self._cut_tail(offset, reason)
                    except CometError as error:
                        connection.end(error)
                        return
                    connection.end(None)
                    return
                case Reconnect(reason):
                    logger.info("connecting again master=%s reason=%s", self._address, reason)
                    connection.end(None)
                    return
                case Refuse(reason):
                    connection.end(RemoteProtocolError(reason))
                    return
        if not self._has_agreed and (self._follow.is_following or not self._replica.end):
            self._has_agreed = True
            self._on_agreed()

    def _dispatch_soon(self) -> None:
        if not self._is_dispatching:
            self._is_dispatching = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._is_dispatching = False
        try:
            if self._replica.dispatch(self._follow.shown_to):
                self._dispatch_soon()
        except (CorruptFile, DiskFull) as error:
            self._tell(self._address or "", str(error))
            if self._connection is not None:
                self._connection.end(error)

    def _tell(self, address: str, reason: str) -> None:
        """In the log, once for each reason in a row."""
        if reason != self._told:
            self._told = reason
            logger.warning("not following master=%s reason=%s", address, reason)


class _Connection(asyncio.BufferedProtocol):
    def __init__(self, came: Callable[[_Connection, list[Any]], None], wire: SlaveWire) -> None:
        self.ended: asyncio.Future[CometError | None] = asyncio.get_running_loop().create_future()
        """Why it ended, if for a reason. A result and no exception: whoever is cancelled does not ask for it."""
        self.report: int | None = None
        """What the master is to be told. Of all that one read brings, the last counts."""
        self._came = came
        self._encode_report = wire.encode_report
        self._reader = wire.reader()
        self._transport: asyncio.Transport | None = None
        self._turn_bytes = 0

    def send_report(self) -> None:
        if self.report is not None and self._transport is not None:
            self._transport.write(self._encode_report(self.report))
        self.report = None

    def say(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def end(self, error: CometError | None) -> None:
        if not self.ended.done():
            self.ended.set_result(error)

    def abort(self) -> None:
        self.end(None)
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.room()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            pieces = self._reader.received(nbytes)
        except RemoteProtocolError as error:
            self.end(error)
            return
        self._came(self, pieces)
        self._turn_bytes += nbytes
        if self._turn_bytes >= TURN_BYTES and self._transport is not None:
            # A loop may read from one socket for as long as there is something.
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._next_turn)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.end(None)

    def _next_turn(self) -> None:
        self._turn_bytes = 0
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
