"""A group of brokers under controllers on one fake clock and network, and what must always be true.

- In one epoch one broker acknowledges.
- Acknowledged: every broker that the controller might elect has the record at that moment.
- Whoever is elected has everything that was acknowledged.
- Two logs are the same up to where both brokers believe that all have them.
- When the trouble is over, all brokers are in the set and have the same log.
The rest is as without a controller (``replica_world``): what is cut off is kept, nothing is altered, answers in time.
"""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any, Final, cast

from tests.simulation.elector import Elector, Questions, Seat
from tests.simulation.replica_book import Sent
from tests.simulation.replica_broker import Place, ReplicaBroker
from tests.simulation.replica_world import PLENTY, ReplicaWorld

from cometmq.broker.config.config_slices import SYNC_MASTER
from cometmq.broker.controller_client.controller_calls import ControllerCalls
from cometmq.broker.controller_client.controller_client import ControllerClient
from cometmq.broker.controller_client.identity_file import IdentityFile
from cometmq.broker.core import BrokerCore
from cometmq.broker.registration import Registration
from cometmq.broker.replication.autoswitch.autoswitch import Autoswitch
from cometmq.testing.faulty_files import Outage

SETTLED_SECONDS: Final = 240.0


class ElectedPlace(Place):
    """The name servers believe the master of the newest reign."""

    broker: ElectedBroker

    async def start(self) -> None:
        broker = self.broker
        if not broker.core.live.current.identity.is_slave:
            broker.world.registered(broker)
        await super().start()


class ElectedBroker(ReplicaBroker):
    client: ControllerClient
    switch: Autoswitch
    world: ElectedWorld

    def use(self, world: ElectedWorld) -> None:
        self.world = world
        self.questions = Questions(
            world.elector,
            self.ha_address,
            Random(world.random.random()),
            reached=list(world.elector.seats),
        )

    @property
    def is_master(self) -> bool:
        return super().is_master and self.client.standing.is_master

    def _place(self) -> Place:
        place = ElectedPlace(self.ha_address, lambda: self._master(self))
        place.broker = self
        return place

    def _build(
        self, core: BrokerCore, registration: Registration, switch: Autoswitch | None = None
    ) -> None:
        core.live.take_role("SLAVE", 1)
        self.switch = Autoswitch(core)
        super()._build(core, registration, self.switch)
        identity = IdentityFile(
            "/store/brokerIdentity", self.files, cluster="cluster", broker_name="group"
        )
        self.client = ControllerClient(
            core,
            self.switch,
            cast(ControllerCalls, self.questions),
            identity,
            self.role,
            self.room,
        )
        self.client.load()

    async def _take_office(self) -> None:
        await self.role.start(is_fenced=True)
        self.client.start()

    def epochs_from(self, start: int) -> list[tuple[int, int]]:
        return [one for one in self.switch.epochs.table if one.start >= start]

    def holds(self, sent: Sent) -> bool:
        """Whether the record is in its log now, or was when it died; or was deleted there to make space."""
        if self.is_up:
            return sent.offset < self.log_start or self.has_now(sent.offset, sent.raw)
        start, log = self.known[-1] if self.known else (0, b"")
        return sent.offset < start or log[sent.offset - start : sent.end - start] == sent.raw


class ElectedWorld(ReplicaWorld):
    def __init__(
        self, seed: int, *, brokers: int, settings: dict[str, str], controllers: int = 1
    ) -> None:
        self.acknowledged: dict[int, int] = {}
        """Which broker acknowledged in an epoch."""
        super().__init__(
            seed,
            brokers=brokers,
            master_role=SYNC_MASTER,
            settings={
                **settings,
                "enableControllerMode": "true",
                "controllerAddr": "10.0.1.1:9878",
            },
        )
        self.announced = None
        self._announced_epoch = 0
        seats = [Seat() for _ in range(controllers)]
        self.elector = Elector(self.clock.monotonic, self._elected, seats=seats)
        for broker in self.members:
            broker.use(self)

    @property
    def members(self) -> list[ElectedBroker]:
        return cast("list[ElectedBroker]", self.brokers)

    def at(self, address: str) -> ElectedBroker:
        return next(one for one in self.members if one.ha_address == address)

    def registered(self, broker: ElectedBroker) -> None:
        if broker.switch.reign >= self._announced_epoch:
            self._announced_epoch = broker.switch.reign
            self.announced = broker.number

    def kill(self, broker: ReplicaBroker, outage: Any) -> None:
        super().kill(broker, outage)
        if self.random.random() < 0.5:
            self.elector.lost(broker.ha_address)
            self.elector.scan()

    def scan_on(self) -> None:
        self.elector.scan()
        self.loop.call_later(5.0, self.scan_on)

    def _broker(self, number: int, settings: dict[str, str]) -> ReplicaBroker:
        return ElectedBroker(
            number,
            self.loop,
            self.network,
            self.random,
            settings,
            self._master_of,
            self._cut,
        )

    def _elected(self, address: str) -> None:
        self.steps.append(f"{self.clock.monotonic():.3f} elected {self.elector.view}")
        self.bury()
        for sent in self.book.safe:
            assert self.at(address).holds(sent), f"elected, but lacks what was acknowledged: {sent}"
        for broker in self.members:
            if broker.is_up and broker.questions.hears:
                self.loop.call_later(self.random.random() * 0.01, self._notify, broker)

    def _notify(self, broker: ElectedBroker) -> None:
        if broker.is_up:
            self.act(broker, broker.client.notice)

    def _answered(self, broker: ReplicaBroker, sent: Sent, code: int) -> None:
        assert sent.code is None, f"answered twice: {sent}"
        sent.code = code
        if code != 0:
            return
        sent.is_sync = True
        self.bury()
        master = cast(ElectedBroker, broker)
        reign = master.switch.reign
        assert self.acknowledged.setdefault(reign, broker.number) == broker.number, (
            f"two masters acknowledge in epoch {reign}: {sent}"
        )
        lease = master.core.live.current.controller.heartbeat_timeout_ms / 1000
        silence = self.clock.monotonic() - master.questions.answered_at
        assert silence < lease, f"acknowledged {silence} s after the last word: {sent}"
        for broker_id in self.elector.view.members:
            member = self.at(self.elector.addresses[broker_id])
            assert member.holds(sent), f"{member} may be elected, but lacks {sent}"

    def check(self) -> None:
        super().check()
        up = [one for one in self.members if one.is_up]
        for one, other in combinations(up, 2):
            end = min(one.switch.confirmed, other.switch.confirmed)
            start = max(one.log_start, other.log_start)
            assert one.log_bytes(start, end) == other.log_bytes(start, end), (
                f"{one} and {other} differ below {end}"
            )

    async def settle(self) -> ElectedBroker:
        """End all trouble. The master, when all are in its set and have its log."""
        self.network.heal()
        self.reach_all()
        for broker in self.members:
            broker.questions.is_heard = broker.questions.hears = True
            broker.files.cancel_crash()
            broker.files.set_free(PLENTY)
            if broker.process is None:
                broker.boot()
        await self.wait_for(self._is_settled, SETTLED_SECONDS)
        for broker in self.members:
            # What it needs was deleted at the master, to make space.
            if "Empty this store" in broker.room.link._told:
                self.steps.append(f"{self.clock.monotonic():.3f} wipe {broker.number}")
                self.kill(broker, Outage.PROCESS_KILL)
                broker.wipe()
                broker.boot()
        await self.wait_for(self._is_settled, SETTLED_SECONDS)
        assert self._is_settled(), f"not settled: {self.elector.view} {self.brokers}"
        # Idle slaves learn of a new reign with the next heartbeat.
        await self.wait(12.0)
        await self.wait_for(self._is_settled, SETTLED_SECONDS)
        assert self._is_settled(), f"not settled any more: {self.elector.view} {self.brokers}"
        master = self.at(self.elector.view.master_address or "")
        for broker in self.members:
            self.book.check_known(broker)
            if broker is not master:
                self._check_same(broker, master)
                start = max(broker.log_start, master.log_start)
                assert broker.epochs_from(start) == master.epochs_from(start), (
                    f"other epochs: {broker.switch} {master.switch}"
                )
        return master

    def reach_all(self) -> None:
        """All controllers reach the decisions, and all brokers reach all controllers."""
        for seat in self.elector.seats:
            seat.remembers = None
            seat.fails_half_way = False
        for broker in self.members:
            broker.questions.reached = list(self.elector.seats)

    def _is_settled(self) -> bool:
        view = self.elector.view
        if view.master_address is None or len(view.members) < len(self.brokers):
            return False
        master = self.at(view.master_address)
        return master.is_master and all(
            one.is_up and one.log_end == master.log_end and one.role.is_settled
            for one in self.members
        )
