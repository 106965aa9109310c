"""What happens to a simulated group of brokers, chosen by a seed.

careful   kills, cuts and full disks as they come, but the operator makes no mistake: before a slave is promoted the
          old master is gone or demoted, and of all slaves the one with the longest log is taken. Nothing that a
          SYNC_MASTER answered with 0 may be missing at the end.
wild      also power losses, deleted files, several masters at a time, and promotions of whoever is there
"""

from __future__ import annotations

from random import Random

from tests.simulation.mishaps import EVENTS_MAX, EVENTS_MIN, Event, Mishaps
from tests.simulation.replica_broker import ReplicaBroker
from tests.simulation.replica_world import PLENTY, ReplicaWorld

from cometmq.broker.config.config_slices import ASYNC_MASTER, SYNC_MASTER
from cometmq.testing.faulty_files import Outage


class Schedule(Mishaps[ReplicaWorld]):
    GAPS = (0.0, 0.0, 0.001, 0.003, 0.01, 0.1, 0.5, 2.0)
    LONG_GAPS = (4.0, 8.0, 25.0)
    LONG_SHARE = 0.03

    def __init__(self, seed: int) -> None:
        self._led_from = 0
        world = self._world(seed)
        kind = "careful" if self.is_careful else "wild"
        super().__init__(seed, world, f"{kind}, {self.settings}")

    def _world(self, seed: int) -> ReplicaWorld:
        random = Random(seed)
        self.is_careful = random.random() < 0.5
        role = SYNC_MASTER if self.is_careful or random.random() < 0.6 else ASYNC_MASTER
        brokers = random.choice((2, 3, 3, 4))
        self.settings = {
            "flushDiskType": random.choice(("SYNC_FLUSH", "ASYNC_FLUSH")),
            "inSyncReplicas": str(random.randint(1, min(brokers, 3))),
            "minInSyncReplicas": random.choice(("1", "1", "2")),
            "allAckInSyncStateSet": random.choice(("true", "false", "false")),
            "slaveTimeout": random.choice(("300", "3000")),
            "haSlaveFallbehindMax": random.choice(("1000", "268435456")),
            "syncFromLastFile": "false"
            if self.is_careful
            else random.choice(("true", "false", "false")),
            "haTransferBatchSize": random.choice(("1024", "1500", "262144")),
        }
        return ReplicaWorld(seed, brokers=brokers, master_role=role, settings=self.settings)

    async def _run(self) -> None:
        world, random = self.world, self.random
        await self._boot_all((0.01, 1.0, 6.0))
        events: list[Event] = [self._send] * 12
        events += [self._reset, self._half_open, self._cut, self._heal]
        events += [self._kill, self._boot, self._boot, self._crash_soon, self._slow_disk]
        events += [self._fill, self._empty]
        if not self.is_careful:
            events += [
                self._lose_power,
                self._promote_any,
                self._demote_any,
                self._delete,
                self._point,
            ]
        for _ in range(random.randint(EVENTS_MIN, EVENTS_MAX)):
            if self.is_careful and random.random() < 0.05:
                await self._switch()
                continue
            await self._happen(events)
        self._tell("the end begins")
        safe = list(world.book.safe)
        master = await world.heal(keeps_master=self.is_careful)
        if self.is_careful:
            for sent in (one for one in safe if one.offset >= master.log_start):
                assert master.has_now(sent.offset, sent.raw), f"lost by {master}: {sent}"

    # What may happen, too.

    def _half_open(self) -> str | None:
        """Either side, whoever opened it."""
        connections = self.world.network.connections
        if not connections:
            return None
        connection = self.random.choice(connections)
        if self.random.random() < 0.5:
            connection = connection.peer
        self.world.network.half_open(connection)
        return f"half open {connection}"

    def _outage(self) -> Outage:
        return Outage.PROCESS_KILL if self.is_careful else self.random.choice(tuple(Outage))

    def _lose_power(self) -> str | None:
        broker = self._any_up()
        if broker is None:
            return None
        self.world.kill(broker, Outage.POWER_LOSS)
        return f"power loss {broker.number}"

    def _delete(self) -> str | None:
        """Time passes, and a broker deletes its old files."""
        broker = self._any_up()
        if broker is None:
            return None
        for one in self.world.brokers:
            if one.is_up:
                one.remember()
        self.world.clock.jump(80 * 3600)

        def delete() -> None:
            broker.core.store.delete_expired_files()
            for _ in range(3):
                broker.core.store.maintain()

        self.world.act(broker, delete)
        return f"delete at {broker.number}" + (f" up to {broker.log_start}" if broker.is_up else "")

    def _promote_any(self) -> str | None:
        broker = self._any_up()
        if broker is None:
            return None
        self.world.promote(broker)
        if self.random.random() < 0.7:
            self.world.announce(broker.number)
        return f"promote {broker}"

    def _demote_any(self) -> str | None:
        masters = [one for one in self.world.brokers if one.is_master]
        if not masters:
            return None
        broker = self.random.choice(masters)
        self.world.demote(broker)
        return f"demote {broker}"

    def _point(self) -> str | None:
        """Somebody tells the name servers nonsense: any broker is the master."""
        number = self.random.randrange(len(self.world.brokers))
        self.world.announce(number)
        return f"announce {number}"

    async def _switch(self) -> None:
        """A careful operator gives the group another master."""
        world = self.world
        old = world.brokers[world.announced or 0]
        if old.process is not None and self.random.random() < 0.5:
            world.kill(old, Outage.PROCESS_KILL)
            self._tell(f"kill {old.number} for good")
        old.change({"brokerRole": "SLAVE"})
        others = [one for one in world.brokers if one is not old]
        for _ in range(50):
            for broker in others:
                if broker.process is None:
                    broker.files.set_free(PLENTY)
                    broker.boot()
            await world.wait(0.2)
            if all(one.is_up for one in others) and (
                old.process is None or (old.is_slave and old.role.is_settled)
            ):
                break
        else:
            raise AssertionError("brokers do not start")
        # A former master may have a longer log that nobody else has: it counts when it has what the last one has.
        # And when the last one found nobody to copy what it began with, a second loss is one too many.
        candidates = [
            one for one in others if one.log_end >= self._led_from and self._is_part(one, old)
        ]
        if not candidates:
            old.change({"brokerRole": world.master_role})
            return
        chosen = max(candidates, key=lambda one: one.log_end)
        self._led_from = chosen.log_end
        world.promote(chosen)
        world.announce(chosen.number)
        self._tell(f"switch from {old} to {chosen}")

    def _is_part(self, broker: ReplicaBroker, master: ReplicaBroker) -> bool:
        """Whether a broker has a first part of a master's log."""
        if master.is_up:
            start, log = master.log_start, master.log_bytes(master.log_start, master.log_end)
        else:
            start, log = master.known[-1] if master.known else (0, b"")
        first = max(start, broker.log_start)
        return (
            first <= broker.log_end <= start + len(log)
            and broker.log_bytes(first, broker.log_end)
            == log[first - start : broker.log_end - start]
        )
