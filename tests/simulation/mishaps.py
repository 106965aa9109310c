"""What may happen to any simulated group of brokers, and how a schedule runs: chosen by a seed, told step by step.

The order in which a schedule asks its ``random`` is part of it: seeds that found something are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from random import Random
from typing import ClassVar, Generic, TypeVar

from tests.simulation.replica_broker import ReplicaBroker
from tests.simulation.replica_world import PLENTY, ReplicaWorld

from cometmq.testing.faulty_files import Moment, Outage

EVENTS_MIN, EVENTS_MAX = 20, 60
MOMENTS = tuple(Moment)

Event = Callable[[], str | None]
"""Does something, and says what; None when it could not."""
World = TypeVar("World", bound=ReplicaWorld)


class Mishaps(ABC, Generic[World]):
    GAPS: ClassVar[Sequence[float]]
    """Seconds between two events."""
    LONG_GAPS: ClassVar[Sequence[float]]
    LONG_SHARE: ClassVar[float]
    """How often a gap is a long one."""

    def __init__(self, seed: int, world: World, title: str) -> None:
        self.seed = seed
        self.world = world
        self.random: Random = world.random
        self._title = title

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
        return f"seed {self.seed}, {self._title}\n{steps}\n{self.world.brokers}"

    @abstractmethod
    async def _run(self) -> None: ...

    async def _boot_all(self, settling: Sequence[float]) -> None:
        world, random = self.world, self.random
        for broker in world.brokers:
            broker.boot()
            if random.random() < 0.3:
                await world.wait(random.choice(self.GAPS))
        await world.wait(random.choice(settling))

    async def _happen(self, events: Sequence[Event]) -> None:
        """One event, and the time until the next."""
        world, random = self.world, self.random
        what = random.choice(events)()
        if what:
            self._tell(what)
        is_long = random.random() < self.LONG_SHARE
        gap = random.choice(self.LONG_GAPS if is_long else self.GAPS)
        if gap:
            await world.wait(gap)
        else:
            world.check()

    def _tell(self, what: str) -> None:
        self.world.steps.append(f"{self.world.clock.monotonic():.3f} {what}")

    # What may happen.

    def _send(self) -> str | None:
        masters = [one for one in self.world.brokers if one.is_up and not one.is_slave]
        if not masters:
            return None
        broker = self.random.choice(masters)
        for _ in range(self.random.choice((1, 1, 2, 5))):
            if broker.is_up:
                self.world.send(broker)
        return f"send to {broker.number}, log ends at {broker.log_end}" if broker.is_up else "send"

    def _reset(self) -> str | None:
        connections = self.world.network.connections
        if not connections:
            return None
        connection = self.random.choice(connections)
        self.world.network.reset(connection)
        return f"reset {connection}"

    def _half_open(self) -> str | None:
        connections = self.world.network.connections
        if not connections:
            return None
        connection = self.random.choice(connections)
        self.world.network.half_open(connection)
        return f"half open {connection}"

    def _cut(self) -> str | None:
        """In one direction or both."""
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
        broker.outage = self._outage()
        broker.files.crash_in(self.random.randint(1, 12), self.random.choice(MOMENTS))
        return f"crash {broker.number} soon"

    def _outage(self) -> Outage:
        """What a crash is."""
        return Outage.PROCESS_KILL

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

    def _any_up(self) -> ReplicaBroker | None:
        up = [one for one in self.world.brokers if one.is_up]
        return self.random.choice(up) if up else None
