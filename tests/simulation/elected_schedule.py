"""What happens to simulated brokers under a controller, chosen by a seed. ``elected_world`` says what must be true."""

from __future__ import annotations

from random import Random

from tests.simulation.elected_world import ElectedWorld
from tests.simulation.mishaps import EVENTS_MAX, EVENTS_MIN, Event, Mishaps

from cometmq.protocol.reply_errors import BrokerReplyError


class Schedule(Mishaps[ElectedWorld]):
    GAPS = (0.0, 0.0, 0.001, 0.003, 0.01, 0.1, 0.5, 1.5, 3.0)
    LONG_GAPS = (6.0, 12.0, 25.0)
    LONG_SHARE = 0.08
    CONTROLLERS = 1

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        brokers = random.choice((2, 3, 3, 4))
        settings = {
            "flushDiskType": random.choice(("SYNC_FLUSH", "ASYNC_FLUSH")),
            "inSyncReplicas": str(random.randint(1, 2)),
            "minInSyncReplicas": random.choice(("1", "1", "2")),
            "slaveTimeout": random.choice(("300", "3000")),
            "haMaxTimeSlaveNotCatchup": random.choice(("1000", "15000")),
            "haTransferBatchSize": random.choice(("1024", "1500", "262144")),
            "controllerHeartBeatTimeoutMills": random.choice(("3000", "10000")),
        }
        world = ElectedWorld(seed, brokers=brokers, settings=settings, controllers=self.CONTROLLERS)
        super().__init__(seed, world, str(settings))

    async def _run(self) -> None:
        world, random = self.world, self.random
        world.scan_on()
        await self._boot_all((0.01, 2.0, 6.0))
        events: list[Event] = [self._send] * 14
        events += [self._reset, self._half_open, self._cut, self._heal, self._heal]
        events += [self._kill, self._boot, self._boot, self._crash_soon, self._slow_disk]
        events += [self._lose_controller, self._find_controller, self._designate]
        events += [self._fill, self._empty, *self._more_events()]
        for _ in range(random.randint(EVENTS_MIN, EVENTS_MAX)):
            await self._happen(events)
        self._tell("the end begins")
        safe = list(world.book.safe)
        master = await world.settle()
        for sent in safe:
            assert master.holds(sent), f"lost by {master}: {sent}"

    def _more_events(self) -> list[Event]:
        return []

    # What may happen, too.

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
        if not others or self.random.random() < 0.5 or elector.is_away:
            return None
        chosen = self.random.choice(others)
        try:
            elector.elect(chosen, is_designated=True)
        except BrokerReplyError:
            return None
        return f"designate {chosen}"
