"""Brokers under a controller against everything that can happen to them, by seed.

As ``test_replication``, with the controller client, the epochs and the SyncStateSet; ``elected_world`` says what must
be true. ``COMETMQ_ELECTION_SEEDS=5000`` tries more schedules, ``COMETMQ_SEED`` begins with another.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from random import Random

import pytest
from tests.simulation.elected_world import ElectedBroker, ElectedWorld
from tests.simulation.replica_world import PLENTY

from cometmq.broker.controller_client.standing import Standing
from cometmq.broker.replication import follow
from cometmq.broker.replication.autoswitch import epoch_follow
from cometmq.broker.replication.autoswitch.sync_state import SyncState
from cometmq.protocol.reply_errors import BrokerReplyError
from cometmq.testing.faulty_files import Moment, Outage

SEEDS = int(os.environ.get("COMETMQ_ELECTION_SEEDS", "200"))
FIRST_SEED = int(os.environ.get("COMETMQ_SEED", "0"))
PARTS = 4
FOUND = [46, 902, 1193]
"""Seeds that failed once; what they showed is mended."""
SEARCHED = 300
GAPS = (0.0, 0.0, 0.001, 0.003, 0.01, 0.1, 0.5, 1.5, 3.0)
LONG_GAPS = (6.0, 12.0, 25.0)


class Schedule:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        random = Random(seed)
        brokers = random.choice((2, 3, 3, 4))
        self.settings = {
            "flushDiskType": random.choice(("SYNC_FLUSH", "ASYNC_FLUSH")),
            "inSyncReplicas": str(random.randint(1, 2)),
            "minInSyncReplicas": random.choice(("1", "1", "2")),
            "slaveTimeout": random.choice(("300", "3000")),
            "haMaxTimeSlaveNotCatchup": random.choice(("1000", "15000")),
            "haTransferBatchSize": random.choice(("1024", "1500", "262144")),
            "controllerHeartBeatTimeoutMills": random.choice(("3000", "10000")),
        }
        self.world = ElectedWorld(seed, brokers=brokers, settings=self.settings)
        self.random = self.world.random

    def run(self) -> None:
        world = self.world
        try:
            world.loop.run_until_complete(self._run())
        except BaseException as error:
            error.add_note(self.story())
            raise
        finally:
            world.loop.finish()

    def story(self) -> str:
        steps = "\n".join(self.world.steps)
        return f"seed {self.seed}, {self.settings}\n{steps}\n{self.world.brokers}"

    async def _run(self) -> None:
        world, random = self.world, self.random
        world.scan_on()
        for broker in world.brokers:
            broker.boot()
            if random.random() < 0.3:
                await world.wait(random.choice(GAPS))
        await world.wait(random.choice((0.01, 2.0, 6.0)))
        events: list[Callable[[], str | None]] = [self._send] * 14
        events += [self._reset, self._half_open, self._cut, self._heal, self._heal]
        events += [self._kill, self._boot, self._boot, self._crash_soon, self._slow_disk]
        events += [self._lose_controller, self._find_controller, self._designate]
        events += [self._fill, self._empty]
        for _ in range(random.randint(20, 60)):
            what = random.choice(events)()
            if what:
                world.steps.append(f"{world.clock.monotonic():.3f} {what}")
            gap = random.choice(LONG_GAPS if random.random() < 0.08 else GAPS)
            if gap:
                await world.wait(gap)
            else:
                world.check()
        world.steps.append(f"{world.clock.monotonic():.3f} the end begins")
        safe = list(world.book.safe)
        master = await world.settle()
        for sent in safe:
            assert master.holds(sent), f"lost by {master}: {sent}"

    # What may happen.

    def _send(self) -> str | None:
        masters = [one for one in self.world.members if one.is_up and not one.is_slave]
        if not masters:
            return None
        broker = self.random.choice(masters)
        for _ in range(self.random.choice((1, 1, 2, 5))):
            if broker.is_up:
                self.world.send(broker)
        return f"send to {broker.number}"

    def _reset(self) -> str | None:
        connections = self.world.network.connections
        if not connections:
            return None
        self.world.network.reset(self.random.choice(connections))
        return "reset"

    def _half_open(self) -> str | None:
        connections = self.world.network.connections
        if not connections:
            return None
        self.world.network.half_open(self.random.choice(connections))
        return "half open"

    def _cut(self) -> str | None:
        one, other = self.random.sample(self.world.brokers, 2)
        self.world.network.cut(one.host, other.host)
        if self.random.random() < 0.4:
            self.world.network.cut(other.host, one.host)
        return f"cut {one.number} {other.number}"

    def _heal(self) -> str | None:
        self.world.network.heal()
        return "heal"

    def _kill(self) -> str | None:
        broker = self._any_up()
        if broker is None:
            return None
        self.world.kill(broker, Outage.PROCESS_KILL)
        return f"kill {broker.number}"

    def _crash_soon(self) -> str | None:
        broker = self._any_up()
        if broker is None:
            return None
        broker.outage = Outage.PROCESS_KILL
        broker.files.crash_in(self.random.randint(1, 12), self.random.choice(tuple(Moment)))
        return f"crash {broker.number} soon"

    def _boot(self) -> str | None:
        down = [one for one in self.world.brokers if one.process is None]
        if not down:
            return None
        broker = self.random.choice(down)
        broker.boot()
        return f"boot {broker.number}"

    def _slow_disk(self) -> str | None:
        broker = self.random.choice(self.world.brokers)
        broker.flush_delay_max = self.random.choice((0.0, 0.01, 1.0, 10.0))
        return f"flush of {broker.number} takes {broker.flush_delay_max}"

    def _fill(self) -> str | None:
        broker = self.random.choice(self.world.brokers)
        broker.files.set_free(self.random.choice((0, 4096, 12288)))
        return f"fill {broker.number}"

    def _empty(self) -> str | None:
        for broker in self.world.brokers:
            broker.files.set_free(PLENTY)
        return "space"

    def _lose_controller(self) -> str | None:
        """One direction or both."""
        broker = self.random.choice(self.world.members)
        questions = broker.questions
        questions.is_heard, questions.hears = self.random.choice(
            ((False, False), (True, False), (False, True))
        )
        return f"{broker.number} is heard={questions.is_heard} hears={questions.hears}"

    def _find_controller(self) -> str | None:
        for broker in self.world.members:
            broker.questions.is_heard = broker.questions.hears = True
        return "controller found"

    def _designate(self) -> str | None:
        """An operator wants another master."""
        elector = self.world.elector
        others = sorted(elector.view.members & elector.living - {elector.view.master_id or 0})
        if not others or self.random.random() < 0.5:
            return None
        chosen = self.random.choice(others)
        try:
            elector.elect(chosen, is_designated=True)
        except BrokerReplyError:
            return None
        return f"designate {chosen}"

    def _any_up(self) -> ElectedBroker | None:
        up = [one for one in self.world.members if one.is_up]
        return self.random.choice(up) if up else None


@pytest.fixture(autouse=True)
def _small_and_quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(follow, "LOOK_BACK_BYTES", 600)
    monkeypatch.setattr(follow, "LOOK_BACK_FACTOR", 4)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found(seed: int) -> None:
    Schedule(seed).run()


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_acknowledged_is_lost_by_an_election(part: int) -> None:
    for seed in range(FIRST_SEED + part, FIRST_SEED + SEEDS, PARTS):
        Schedule(seed).run()


def test_a_seed_gives_the_same_run_again() -> None:
    stories = []
    for _ in range(2):
        schedule = Schedule(11)
        schedule.run()
        stories.append((schedule.story(), schedule.random.getstate()))
    assert stories[0] == stories[1]


# Faults that somebody could build in.


def _wait_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SyncState, "awaited", property(lambda self: frozenset()))


def _propose_before_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    awaited = SyncState.awaited

    def late(self: SyncState) -> frozenset[int]:
        assert isinstance(awaited, property)
        return self.members - {self.own_id}

    monkeypatch.setattr(SyncState, "awaited", property(late))


def _reign_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Standing, "tick", lambda self, now: [])
    monkeypatch.setattr(Standing, "is_proven", lambda self, now: True)


def _cut_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        epoch_follow, "common_end", lambda own, own_end, master, master_end: own_end
    )
    monkeypatch.setattr(follow, "LOOK_BACK_BYTES", 1)


@pytest.mark.parametrize(
    "plant",
    [
        _wait_for_nobody,
        _propose_before_waiting,
        _reign_for_ever,
        _cut_nothing,
    ],
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    for seed in range(SEARCHED):
        try:
            Schedule(seed).run()
        except AssertionError:
            return
    pytest.fail("no schedule showed it")
