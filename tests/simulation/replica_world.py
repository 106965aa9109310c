"""A group of brokers on one fake clock and network, with its operator, its clients, and what must always be true.

- Answered with 0 by a SYNC_MASTER: at that moment as many brokers as promised have the record, or had it.
- A broker that follows has its master's log up to its own end, byte for byte.
- A broker that comes back has what it had: all of it after a kill, what was flushed after a power loss.
- Nothing in any log was never sent, and nothing differs from what was sent.
- What is cut off a log lies in a file of its own.
- Every send is answered in time.
- When the trouble is over and one master is left, all brokers have its log, and their queues answer as its queues,
  unless the master had to number a queue anew (``_was_numbered_anew``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final

from tests.simulation.replica_book import Book, Sent
from tests.simulation.replica_broker import EXPIRE_SECONDS, ReplicaBroker

from cometmq.base.errors import CometError
from cometmq.broker.config.config_slices import SYNC_MASTER
from cometmq.broker.replication.replicas import copies_needed
from cometmq.store.log.new_messages import NewMessage
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import Crashed, Outage
from cometmq.testing.network.fake_network import MemoryNetwork
from cometmq.testing.network.simulated_loop import SimulatedLoop

PLENTY: Final = 1 << 40
SETTLED_SECONDS: Final = 90.0
"""Silent peers are noticed after 20 s; then tails are compared, a try every 5 s at the latest."""
QUEUES: Final = (("A", 0), ("A", 1), ("B", 0))


class ReplicaWorld:
    """
    Args:
        master_role: of whoever is master.
        settings: of all brokers.
    """

    def __init__(
        self, seed: int, *, brokers: int, master_role: str, settings: dict[str, str]
    ) -> None:
        self.random = Random(seed)
        self.clock = FakeClock()
        self.network = MemoryNetwork(self.random)
        self.loop = SimulatedLoop(self.clock, self.network)
        self.loop.expected = (Crashed,)
        self.book = Book()
        self.master_role = master_role
        self.announced: int | None = 0
        """The broker that the name servers call master."""
        self.cuts = 0
        self.steps: list[str] = []
        self.brokers = [
            self._broker(
                number, {**settings, "brokerRole": master_role if number == 0 else "SLAVE"}
            )
            for number in range(brokers)
        ]

    def _broker(self, number: int, settings: dict[str, str]) -> ReplicaBroker:
        return ReplicaBroker(
            number,
            self.loop,
            self.network,
            self.random,
            settings,
            self._master_of,
            self._cut,
        )

    # What happens.

    def send(self, broker: ReplicaBroker) -> None:
        number = len(self.book.sent)
        topic, queue_id = self.random.choice(QUEUES)
        body = f"{number:06d}".encode() + b"x" * self.random.choice((0, 10, 100, 400, 1500))
        config = broker.core.live.current
        flush_seconds = config.store.flush.sync_timeout_ms / 1000
        sent = Sent(
            number=number,
            broker=broker.number,
            at=self.clock.monotonic(),
            wait_max=max(config.replication.wait_ms / 1000, flush_seconds) + 3 * EXPIRE_SECONDS,
            life=id(broker.process),
        )
        self.book.add(sent)
        self.act(broker, lambda: self._send(broker, sent, topic, queue_id, body))

    def _send(
        self, broker: ReplicaBroker, sent: Sent, topic: str, queue_id: int, body: bytes
    ) -> None:
        core = broker.core
        message = NewMessage(topic=topic, queue_id=queue_id, body=body, properties=b"")
        try:
            core.durability.require_replicas()
            stored = core.store.put(message)
        except CometError:
            sent.is_forgotten = True
            return
        view = core.store.record_at(stored.physical_offset)
        assert view is not None
        sent.offset, sent.raw = stored.physical_offset, bytes(view)
        process = broker.process

        def answer(code: int) -> None:
            if process is not None and not process.is_gone:
                self._answered(broker, sent, code)

        core.durability.when_safe(stored.end_offset, answer)
        broker.expire_later()

    def _answered(self, broker: ReplicaBroker, sent: Sent, code: int) -> None:
        assert sent.code is None, f"answered twice: {sent}"
        sent.code = code
        config = broker.core.live.current
        if code != 0 or config.identity.role != SYNC_MASTER:
            return
        sent.is_sync = True
        self.bury()
        needed = copies_needed(config.replication, following=0)
        have = [one.number for one in self.brokers if one.ever_had(sent.offset, sent.raw)]
        assert len(have) >= needed, f"answered 0, but only {have} of {needed} had it: {sent}"

    def act(self, broker: ReplicaBroker, action: object) -> None:
        assert callable(action)
        try:
            broker.act(action)
        except Crashed:
            self.bury()

    def kill(self, broker: ReplicaBroker, outage: Outage) -> None:
        broker.died(outage)
        for sent in self.book.sent:
            if sent.broker == broker.number and sent.code is None:
                sent.is_forgotten = True

    def bury(self) -> None:
        """Processes whose disk crashed under them are dead."""
        for broker in self.brokers:
            if broker.process is not None and broker.files.is_down:
                self.steps.append(
                    f"{self.clock.monotonic():.3f} crash {broker.number} {broker.outage.value}"
                )
                self.kill(broker, broker.outage)

    def announce(self, number: int | None) -> None:
        """The name servers know another master, and tell everybody."""
        self.announced = number
        for broker in self.brokers:
            if broker.is_up:
                self.act(broker, broker.place.renew)

    def promote(self, broker: ReplicaBroker) -> None:
        broker.change({"brokerRole": self.master_role})

    def demote(self, broker: ReplicaBroker) -> None:
        broker.change({"brokerRole": "SLAVE"})

    async def wait(self, seconds: float) -> None:
        """Let time pass in small steps, and look after each."""
        end = self.clock.monotonic() + seconds
        while (left := end - self.clock.monotonic()) > 0:
            await asyncio.sleep(min(left, 0.5))
            self.check()

    async def wait_for(self, condition: Callable[[], bool], seconds_max: float) -> None:
        """The same, until something is so."""
        end = self.clock.monotonic() + seconds_max
        while not condition() and self.clock.monotonic() < end:
            await self.wait(0.5)

    # What must be true.

    def check(self) -> None:
        self.bury()
        if self.loop.failures:
            raise AssertionError(f"failed: {self.loop.failures}") from _cause(self.loop.failures[0])
        self.book.check_times(self.clock.monotonic())
        for connection in self.network.connections:
            slave = self._at(connection.process)
            master = self._at(connection.peer.process)
            if slave is None or master is None:
                continue
            if slave.is_slave and slave.room.link.is_following:
                self._check_follows(slave, master)

    def _check_follows(self, slave: ReplicaBroker, master: ReplicaBroker) -> None:
        start = max(slave.log_start, master.log_start)
        end = slave.log_end
        assert end <= master.log_end, f"{slave} follows {master}, but has more"
        assert slave.log_bytes(start, end) == master.log_bytes(start, end), (
            f"{slave} follows {master}, but has another log"
        )

    def _at(self, process: object) -> ReplicaBroker | None:
        return next((one for one in self.brokers if one.is_up and one.process is process), None)

    def _cut(
        self, broker: ReplicaBroker, start: int, before: bytes, offset: int, path: str
    ) -> None:
        self.cuts += 1
        assert broker.files.read(path) == before[offset - start :], (
            f"cut off, but not kept: {broker}"
        )
        assert broker.log_end == offset, f"cut at {offset}, but ends at {broker.log_end}"

    def _master_of(self, broker: ReplicaBroker) -> str | None:
        return None if self.announced is None else self.brokers[self.announced].ha_address

    # The end.

    async def heal(self, *, keeps_master: bool) -> ReplicaBroker:
        """End all trouble; one master remains. Returns it, when all follow.

        Args:
            keeps_master: whoever is master stays it; else the longest log wins.
        """
        self.network.heal()
        for broker in self.brokers:
            broker.files.cancel_crash()
            broker.files.set_free(PLENTY)
            if broker.process is None:
                broker.boot()
        await self.wait_for(lambda: all(one.is_up for one in self.brokers), 15.0)
        for broker in self.brokers:
            assert broker.is_up, f"{broker} does not start"
        masters = [one for one in self.brokers if not one.is_slave]
        longest = max(self.brokers, key=lambda one: one.log_end)
        master = masters[0] if masters and keeps_master else longest
        for broker in self.brokers:
            if broker is not master and not broker.is_slave:
                self.demote(broker)
        await self.wait(1.0)
        if master.is_slave:
            self.promote(master)
        self.announce(master.number)
        others = len(self.brokers) - 1
        await self.wait_for(lambda: master.is_master and len(master.core.replicas) >= others, 30.0)
        for _ in range(3):
            self.send(master)
        await self.wait_for(lambda: self._is_same(master), SETTLED_SECONDS)
        for broker in self.brokers:
            if broker is not master and broker.log_end and not broker.room.link.is_following:
                await self._empty(broker, master)
        await self.wait_for(lambda: self._is_same(master), 30.0)
        await self.wait(6.0)
        for broker in self.brokers:
            self.book.check_known(broker)
            if broker is not master:
                self._check_same(broker, master)
        return master

    def _is_same(self, master: ReplicaBroker) -> bool:
        return all(
            one is master
            or (one.is_up and one.room.link.is_following and one.log_end == master.log_end)
            or (one.is_up and one.log_end == master.log_end == 0)
            for one in self.brokers
        )

    async def _empty(self, broker: ReplicaBroker, master: ReplicaBroker) -> None:
        """It refuses to follow. That is right when there is nothing that both logs have in common."""
        start = max(broker.log_start, master.log_start)
        common = broker.log_bytes(
            start,
            min(start + 8, broker.log_end, master.log_end) if start < broker.log_end else start,
        )
        agrees = bool(common) and common == master.log_bytes(start, start + len(common))
        first = self.book.first_record(broker, start) if agrees else b""
        if first and master.has_now(start, first) and broker.log_start <= start:
            raise AssertionError(f"{broker} refuses to follow {master}, though it could")
        self.steps.append(f"{self.clock.monotonic():.3f} wipe {broker.number}")
        self.kill(broker, Outage.PROCESS_KILL)
        broker.wipe()
        await self.wait(0.1)
        broker.boot()

    def _check_same(self, broker: ReplicaBroker, master: ReplicaBroker) -> None:
        if broker.log_end or master.log_end:
            assert broker.room.link.is_following, f"{broker} does not follow {master}"
        assert broker.log_end == master.log_end, f"{broker} lacks some of {master}"
        self._check_follows(broker, master)
        start = max(broker.log_start, master.log_start)
        for topic, queue_id in QUEUES:
            found = [_queue(one, topic, queue_id, start) for one in (broker, master)]
            if found[0] != found[1] and (
                _was_numbered_anew(broker, master, topic, queue_id, start)
                or _was_numbered_anew(master, broker, topic, queue_id, start)
            ):
                continue
            assert found[0] == found[1], f"{topic}/{queue_id} of {broker} is not that of {master}"


def _queue(
    broker: ReplicaBroker, topic: str, queue_id: int, start: int
) -> tuple[int, list[tuple[int, int, int]]]:
    store = broker.core.store
    low, high = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
    entries = store.entries(topic, queue_id, low, high - low) if high > low else []
    both_have = [one for one in entries if one[0] >= start]
    # A broker that never had the older files knows nothing of queues that have nothing new.
    return high if both_have else 0, both_have


def _was_numbered_anew(
    broker: ReplicaBroker, master: ReplicaBroker, topic: str, queue_id: int, start: int
) -> bool:
    """Whether ``master``, now or earlier, gave a number in a queue that an older record of ``broker`` has.

    A broker that began with its master's later files does not know how far queues without new records had come. As a
    master it begins them at 0 again, as RocketMQ does. Who has the older numbers has no entry for the new ones.
    """
    low = master.core.store.min_offset(topic, queue_id)
    count = master.core.store.max_offset(topic, queue_id) - low
    entries = master.core.store.entries(topic, queue_id, low, count) if count else []
    number = next((low + at for at, one in enumerate(entries) if one[0] >= start), None)
    if number is None or number >= broker.core.store.max_offset(topic, queue_id):
        return False
    if number < broker.core.store.min_offset(topic, queue_id):
        return True
    return broker.core.store.entries(topic, queue_id, number, 1)[0][0] < start


def _cause(failure: BaseException | str) -> BaseException | None:
    return failure if isinstance(failure, BaseException) else None
