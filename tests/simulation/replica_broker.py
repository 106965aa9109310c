"""One broker of a simulated group: the real store, port, link, role and waiting sends, on a disk that can fail.

Only what surrounds them is a model: the name server (``Place``), the client (``replica_world.send``) and the threads
that flush, whose work is done by timers. Tables are not copied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import Any, Final, cast

from cometmq.base.errors import CometError
from cometmq.broker.config.broker_config import BrokerConfig, load_broker_config
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.core import BrokerCore, open_core
from cometmq.broker.master_duties import MasterDuties
from cometmq.broker.registration import MasterPlace, Registration
from cometmq.broker.replication.acting.member_group import ActingMaster
from cometmq.broker.replication.autoswitch.autoswitch import Autoswitch
from cometmq.broker.replication.metadata_sync import MetadataSync
from cometmq.broker.replication.replication_room import ReplicationRoom
from cometmq.broker.replication.role import Role
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import Crashed, FaultyFiles, Outage
from cometmq.testing.network.fake_network import MemoryNetwork, Process
from cometmq.testing.network.simulated_loop import SimulatedLoop

FILE_BYTES: Final = 4096
HA_PORT: Final = 10912
EXPIRE_SECONDS: Final = 0.1
"""How often a broker looks for sends that waited too long."""
FLUSH_SECONDS: Final = 0.5
MAINTAIN_SECONDS: Final = 10.0

SETTINGS: Final = {
    "brokerName": "group",
    "brokerClusterName": "cluster",
    "brokerIP1": "127.0.0.1",
    "listenPort": "10911",
    "storePathRootDir": "/store",
    "mappedFileSizeCommitLog": str(FILE_BYTES),
    "mappedFileSizeConsumeQueue": "2000",
    "maxMessageSize": "2000",
    "messageIndexEnable": "false",
    "haTransferBatchSize": "1024",
    "deleteWhen": ";".join(f"{hour:02d}" for hour in range(24)),
}


class Place:
    """What a broker sees of the name servers: who the master is, told now and whenever it asks."""

    def __init__(self, ha_address: str, master: Callable[[], str | None]) -> None:
        self.ha_address = ha_address
        self.on_master: Callable[[MasterPlace], None] = lambda _: None
        self._master = master

    def renew(self) -> None:
        address = self._master()
        if address is not None and address != self.ha_address:
            self.on_master(MasterPlace(address, address))

    async def start(self) -> None:
        self.renew()

    async def stop(self) -> None:
        return None


class NoTables:
    """In place of the copies of the master's tables: what is simulated here is the log."""

    def start(self) -> None:
        return None

    def follow(self, master_address: str | None) -> None:
        return None

    def cut(self, log_end: int) -> None:
        return None

    async def stop(self) -> None:
        return None


class NoMembers:
    """In place of the brokers that watch each other: nobody heals or acts here."""

    async def members(self) -> dict[int, str]:
        return {}


class ReplicaBroker:
    """
    Args:
        settings: ``broker.conf`` keys on top of ``SETTINGS``.
        master: the replication address that the name servers tell this broker.
        on_cut: told the log before a cut, where it is cut, and the path of what was put aside.
    """

    core: BrokerCore
    room: ReplicationRoom
    role: Role
    place: Place

    def __init__(
        self,
        number: int,
        loop: SimulatedLoop,
        network: MemoryNetwork,
        random: Random,
        settings: dict[str, str],
        master: Callable[[ReplicaBroker], str | None],
        on_cut: Callable[[ReplicaBroker, int, bytes, int, str], None],
    ) -> None:
        self.number = number
        self.host = f"10.0.0.{number + 1}"
        self.ha_address = f"{self.host}:{HA_PORT}"
        self.settings = {**SETTINGS, **settings, "brokerId": str(number + 1)}
        self.random = random
        self.process: Process | None = None
        self.is_ready = False
        self.outage = Outage.PROCESS_KILL
        self.flush_delay_max = 0.01
        self.known: list[tuple[int, bytes]] = []
        """Logs that it had in earlier lives or before a cut, with their start: what it once confirmed."""
        self.promised_to = 0
        """A life that ended had this much of its log to keep."""
        self._flushed_to = 0
        self._cutting_at: int | None = None
        self._loop = loop
        self._network = network
        self._master = master
        self._on_cut = on_cut
        self._clock: FakeClock = loop.clock
        self.files = FaultyFiles(self._clock, seed=random.getrandbits(32))

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.is_ready and not self.process.is_gone

    @property
    def is_master(self) -> bool:
        return self.is_up and self.role.is_settled and not self.core.live.current.identity.is_slave

    @property
    def is_slave(self) -> bool:
        return self.is_up and self.core.live.current.identity.is_slave

    @property
    def log_end(self) -> int:
        return self.core.store.max_physical

    @property
    def log_start(self) -> int:
        return self.core.store.min_physical

    def log_bytes(self, start: int, end: int) -> bytes:
        if start >= end:
            return b""
        parts = []
        while start < end:
            size_bytes = min(end, start - start % FILE_BYTES + FILE_BYTES) - start
            view = self.core.store.log_view(start, size_bytes)
            assert view is not None, (self, start, size_bytes)
            parts.append(view)
            start += size_bytes
        return b"".join(parts)

    def ever_had(self, offset: int, raw: bytes) -> bool:
        """Whether these bytes are, or once were, in its log."""
        end = offset + len(raw)
        if self.is_up and self.has_now(offset, raw):
            return True
        return any(
            start <= offset and log[offset - start : end - start] == raw
            for start, log in self.known
        )

    def has_now(self, offset: int, raw: bytes) -> bool:
        end = offset + len(raw)
        return (
            self.log_start <= offset and end <= self.log_end and self.log_bytes(offset, end) == raw
        )

    def remember(self) -> None:
        start = self.log_start
        self.known.append((start, self.log_bytes(start, self.log_end)))

    def boot(self) -> None:
        assert self.process is None
        process = self.process = Process(self.host, lambda: self.files.is_down)
        self.is_ready = False
        self._loop.start(process, self._main).add_done_callback(self._started)

    def died(self, outage: Outage) -> None:
        """The process ends here and now."""
        process = self.process
        assert process is not None
        if self.is_ready:
            # The log as it was when the process died, read as if it were alive.
            self.files.is_down = False
            self.remember()
            marks = self.core.store.watermarks
            self._flushed_to = marks.flushed.value
            # Of a record that was on its way from the master only a part may be there.
            self.promised_to = marks.dispatched.value if self.known[-1][1] else 0
            if self._cutting_at is not None:
                self.promised_to = min(self.promised_to, self._cutting_at)
                self._cutting_at = None
        if outage is Outage.POWER_LOSS:
            self.promised_to = min(self.promised_to, self._flushed_to)
        self.files.crash_now()
        self.process = None
        self.is_ready = False
        self._loop.kill(process, is_silent=outage is Outage.POWER_LOSS)
        self.files.restart(outage)

    def act(self, action: Callable[[], Any]) -> Any:
        """Do something as this broker's process."""
        assert self.process is not None
        return self.process.context.run(action)

    def change(self, values: dict[str, str]) -> None:
        """Settings, of which the role is one; kept for later lives."""
        self.settings.update(values)
        if self.is_up:
            self.act(lambda: self.core.live.update(values))

    def wipe(self) -> None:
        """An operator empties its disk."""
        assert self.process is None
        self.files.remove_tree("/store")
        self.promised_to = 0

    def _started(self, task: asyncio.Task[None]) -> None:
        error = task.exception()
        if isinstance(error, CometError):
            # It does not start, for want of space for example, and is as dead as after a crash.
            self.files.crash_now()
        elif error is not None and not isinstance(error, Crashed):
            self._loop.failures.append(error)

    def _check_kept(self) -> None:
        """What a life promised is there in the next."""
        assert self.log_end >= self.promised_to, (
            f"broker {self.number} kept {self.log_end} of {self.promised_to} bytes"
        )
        if self.known and self.promised_to:
            start, before = self.known[-1]
            first, last = max(start, self.log_start), min(self.log_end, start + len(before))
            assert self.log_bytes(first, last) == before[first - start : last - start], (
                f"broker {self.number} has another log after its restart"
            )

    async def _main(self) -> None:
        live = LiveConfig(
            _config(tuple(sorted(self.settings.items()))), clock=self._clock, files=self.files
        )
        core = self.core = open_core(
            live,
            clock=self._clock,
            files=self.files,
            loop=cast(Any, self._loop),
            port=10911,
            schedule=lambda callback: cast(None, self._loop.call_soon(callback)),
        )
        self._check_kept()
        self._watch_cuts(core)
        core.store.watermarks.flushed.on_wait(self._flush_soon)
        self.place = self._place()
        self._build(core, cast(Registration, self.place))
        await self.role.take_up()
        await self.room.port.start(self.host, HA_PORT)
        assert self.process is not None
        self._network.came_up(self.process)
        self.is_ready = True
        self._repeat(FLUSH_SECONDS, self._flush)
        self._repeat(MAINTAIN_SECONDS, self._maintain)
        await self._take_office()

    def _build(
        self, core: BrokerCore, registration: Registration, switch: Autoswitch | None = None
    ) -> None:
        self.room = ReplicationRoom(
            core,
            registration,
            cast(MetadataSync, NoTables()),
            cast(ActingMaster, NoMembers()),
            switch,
        )
        self.role = Role(core, MasterDuties(core, []), registration, self.room)

    async def _take_office(self) -> None:
        await self.role.start()

    def _place(self) -> Place:
        return Place(self.ha_address, lambda: self._master(self))

    def _watch_cuts(self, core: BrokerCore) -> None:
        cut_tail = core.store.cut_tail

        def watched(offset: int) -> str:
            self.remember()
            start, before = self.known[-1]
            self._cutting_at = offset
            path = cut_tail(offset)
            self._cutting_at = None
            self._on_cut(self, start, before, offset, path)
            return path

        cast(Any, core.store).cut_tail = watched

    def expire_later(self) -> None:
        """As housekeeping does all the time; here only while somebody waits, so that idle time costs nothing."""

        def expire() -> None:
            self.core.durability.expire(self._clock.monotonic())
            if self.core.durability.waiting:
                self.expire_later()

        self._loop.call_later(EXPIRE_SECONDS, expire)

    def _flush_soon(self) -> None:
        self._loop.call_later(self.random.random() * self.flush_delay_max, self._flush)

    def _flush(self) -> None:
        if not self.core.store.flush_behind_bytes:
            return
        try:
            self.core.store.flush()
        except CometError:
            # As the flush threads: whoever waits is answered when the time is over.
            return

    def _maintain(self) -> None:
        start = self.log_start
        log = self.log_bytes(start, self.log_end)
        self.core.store.maintain()
        if self.log_start != start:
            # It deletes on a full disk, even what somebody waits for.
            self.known.append((start, log))

    def _repeat(self, seconds: float, action: Callable[[], None]) -> None:
        def again() -> None:
            asyncio.get_running_loop().call_later(seconds, again)
            action()

        asyncio.get_running_loop().call_later(seconds * self.random.random(), again)

    def __repr__(self) -> str:
        if not self.is_up:
            return f"<broker {self.number} down>"
        kind = self.core.live.current.identity.role
        link = self.room.link
        log = f"{self.log_start}..{self.log_end}"
        return f"<broker {self.number} {kind} {log} follows={link.is_following} {link._told}>"


@lru_cache(maxsize=256)
def _config(settings: tuple[tuple[str, str], ...]) -> BrokerConfig:
    return load_broker_config(dict(settings))[0]
