"""Heals damaged records: fetches their bytes from the log of a replica and writes them over the damaged ones.

The store says which records are damaged (``store.log.damage``); ``record_fetch`` decides whether what a replica has is
the record. They are fetched one at a time. What could not be healed is tried again when it is read again, and every
minute. Belongs to the event loop, which owns the store.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence
from typing import Final

from cometmq.base.errors import CometError
from cometmq.broker.replication.ha_wire import ONLY_READS, TransferReader, encode_report
from cometmq.broker.replication.record_fetch import CONTEXT_BYTES, NotHealed, RecordFetch
from cometmq.model.address import split_address
from cometmq.store.log.damage import Damage
from cometmq.store.message_store import MessageStore

logger = logging.getLogger("cometmq.broker")

PENDING_MAX: Final = 1024
FETCH_SECONDS_MAX: Final = 5.0
"""For one record from one replica, connecting included."""
AGAIN_SECONDS: Final = 60.0
"""What could not be healed is not tried again before."""
SHUN_SECONDS: Final = 10.0
"""A replica that cannot be reached is not asked again before."""
READ_BYTES: Final = 256 * 1024


class Healer:
    """Args:
    store: its damaged records are healed.
    peers: replication addresses of the brokers that have the same log, now.
    file_bytes: the size of a log file.
    tls: connect with it.
    """

    def __init__(
        self,
        store: MessageStore,
        peers: Callable[[], Sequence[str]],
        *,
        file_bytes: int,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = tls
        self._store = store
        self._peers = peers
        self._file_bytes = file_bytes
        self._pending: dict[int, Damage] = {}
        self._failed_at: dict[int, float] = {}
        self._shunned: dict[str, float] = {}
        self._has_more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._now: Callable[[], float] = lambda: 0.0

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._now = loop.time
        self._task = loop.create_task(self._run(), name="cometmq-heal")
        self._store.damages.healer = self._take
        for damage in self._store.damages.known:
            self._take(damage)

    async def stop(self) -> None:
        self._store.damages.healer = None
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        for place in self._pending:
            self._store.damages.given_up(place)
        self._pending.clear()

    @property
    def is_busy(self) -> bool:
        return bool(self._pending)

    def _take(self, damage: Damage) -> bool:
        """Whether this record will be asked for."""
        place = damage.place
        if place in self._pending:
            return True
        failed_at = self._failed_at.get(place)
        if failed_at is not None and self._now() - failed_at < AGAIN_SECONDS:
            return False
        if len(self._pending) >= PENDING_MAX or not self._peers():
            return False
        self._pending[place] = damage
        self._has_more.set()
        return True

    async def _run(self) -> None:
        while True:
            while self._pending:
                place = next(iter(self._pending))
                try:
                    await self._heal(self._pending[place])
                except (CometError, OSError) as error:
                    # Of our own store: replicas that fail are told of where they are asked.
                    self._give_up(place, str(error))
                except Exception as error:
                    logger.exception("healing failed offset=%d", place)
                    self._give_up(place, repr(error))
                self._pending.pop(place, None)
            self._has_more.clear()
            try:
                async with asyncio.timeout(AGAIN_SECONDS):
                    await self._has_more.wait()
            except TimeoutError:
                for damage in self._store.damages.known:
                    self._take(damage)

    async def _heal(self, damage: Damage) -> None:
        reasons: list[str] = []
        for address in self._peers():
            if self._now() < self._shunned.get(address, 0.0):
                reasons.append(f"{address} could not be reached")
                continue
            try:
                record = await self._fetch(address, damage)
            except (CometError, OSError, TimeoutError) as error:
                if not isinstance(error, CometError):
                    self._shun(address)
                reasons.append(f"{address}: {error or 'it took too long'}")
                continue
            await self._write(damage.place, record)
            return
        self._give_up(damage.place, "; ".join(reasons) or "there is no replica")

    async def _fetch(self, address: str, damage: Damage) -> bytes:
        """The record from one replica. Raises NotHealed, OSError, TimeoutError, RemoteProtocolError."""
        fetch = RecordFetch(damage, *self._own_bytes(damage))
        host, port = split_address(address)
        async with asyncio.timeout(FETCH_SECONDS_MAX):
            reader, writer = await asyncio.open_connection(host, port, ssl=self._tls)
            try:
                writer.write(encode_report(ONLY_READS) + encode_report(fetch.asked_from))
                transfers = TransferReader()
                while data := await reader.read(READ_BYTES):
                    for piece in transfers.feed(data):
                        record = fetch.came(piece)
                        if record is not None:
                            return record
            finally:
                writer.transport.abort()
        raise NotHealed("it closed the connection")

    def _own_bytes(self, damage: Damage) -> tuple[bytes, bytes]:
        """What is before the record in its file, and what is left of itself."""
        place = damage.place
        context_bytes = min(CONTEXT_BYTES, place % self._file_bytes)
        context = self._store.log_view(place - context_bytes, context_bytes)
        size_bytes = damage.size_bytes or 0
        own = self._store.log_view(place, size_bytes)
        return bytes(context or b""), bytes(own or b"")

    async def _write(self, place: int, record: bytes) -> None:
        file = self._store.overwrite(place, record)
        try:
            await asyncio.to_thread(file.sync)
        finally:
            file.close()
        self._failed_at.pop(place, None)
        self._store.damages.healed(place)

    def _give_up(self, place: int, reason: str) -> None:
        if len(self._failed_at) >= PENDING_MAX:
            del self._failed_at[next(iter(self._failed_at))]
        is_new = place not in self._failed_at
        self._failed_at[place] = self._now()
        if is_new:
            logger.error("record not healed offset=%d reason=%s", place, reason)
        self._store.damages.given_up(place)

    def _shun(self, address: str) -> None:
        self._shunned = {one: until for one, until in self._shunned.items() if until > self._now()}
        self._shunned[address] = self._now() + SHUN_SECONDS

    def __repr__(self) -> str:
        return f"<Healer pending={len(self._pending)}>"
