"""A set of name servers and what stands behind it: connections, figures, their history. One for each site."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar, cast

from cometmq.admin.admin import Admin
from cometmq.base.memory import give_free_blocks_back
from cometmq.base.ports import Clock
from cometmq.client.client_config import ClientConfig
from cometmq.client.errors import NoRoute
from cometmq.dashboard.dashboard_config import SiteConfig
from cometmq.dashboard.watch.certificates import Certificates
from cometmq.dashboard.watch.figures import dead_letters, figures_of, lag_ages
from cometmq.dashboard.watch.history import History
from cometmq.dashboard.watch.known import EMPTY, NOBODY, Fill, Members
from cometmq.dashboard.watch.online import online
from cometmq.dashboard.watch.round import Rounds
from cometmq.dashboard.watch.snapshot import DEAD_LETTER, NORMAL, Snapshot
from cometmq.dashboard.watch.sweep import Sweep
from cometmq.dashboard.watch.trends import Trends
from cometmq.model.address import split_addresses

T = TypeVar("T")

FIRST_SECONDS_MAX: Final = 0.8
"""A page that comes before the first round waits so long for it, and then shows what there is."""
OFFLINE_SECONDS: Final = 30.0
"""A group that was offline is asked for again after so long; brokers log each such question as refused."""
PRUNE_SECONDS: Final = 600.0
CALL_SECONDS: Final = 3.0


class Site:
    """``start`` it once, ``stop`` it once; owned by the event loop."""

    def __init__(
        self,
        config: SiteConfig,
        *,
        client: ClientConfig,
        controllers: str,
        proxies: str = "",
        clock: Clock,
        history: History,
        certificate_path: str = "",
    ) -> None:
        self.name = config.name
        self.name_servers = config.name_servers.split(";")
        self.client = client.with_name_servers(config.name_servers)
        self.controllers = controllers
        self.proxies = split_addresses(proxies)
        self.admin = Admin(config=self.client, controllers=controllers, timeout=CALL_SECONDS)
        self.trends = Trends()
        self.members: Sweep[Members] = Sweep(
            self._members, clock, lambda members: 0.0 if members.count else OFFLINE_SECONDS
        )
        self.status: Sweep[Fill | None] = Sweep(self._fill, clock)
        self.certificates = Certificates(
            (certificate_path, client.tls.client_cert_path if client.tls.is_client_enabled else ""),
            has_tls=client.tls.is_client_enabled,
            clock=clock,
        )
        self.rates: dict[str, float] = {}
        """Messages per second into topics that are consumed."""
        self.lag_ages: dict[str, int] = {}
        """How old what comes next for a group is, at most, in ms."""
        self.changing = asyncio.Lock()
        """Held while something is read, changed and written back, so that of two operators none undoes the other's."""
        self._memo: dict[str, Any] = {}
        self.rounds: Rounds
        self.history = history
        self._clock = clock
        self._first = asyncio.Event()
        self._turn = asyncio.Lock()
        self._ends: tuple[int, dict[str, int]] = 0, {}
        self._behind: dict[str, int] = {}
        self._pruned_at = 0.0

    async def start(self) -> None:
        await self.admin.start()
        self.rounds = Rounds(
            self.admin,
            self._clock,
            name_servers=";".join(self.name_servers),
            has_controllers=bool(self.controllers),
        )

    async def stop(self) -> None:
        await self.rounds.stop()
        await self.certificates.stop()
        await self.admin.close()

    @property
    def snapshot(self) -> Snapshot:
        return self.rounds.snapshot

    async def seen(self) -> Snapshot:
        """The latest snapshot. Just after the start it waits a little for the first one."""
        if not self._first.is_set():
            try:
                async with asyncio.timeout(FIRST_SECONDS_MAX):
                    await self._first.wait()
            except TimeoutError:
                pass
        return self.snapshot

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What follows from the last round alone is made once, and not for every tab anew."""
        if name not in self._memo:
            self._memo[name] = make()
        return cast(T, self._memo[name])

    async def go(self) -> None:
        """One round: ask, compute, remember."""
        async with self._turn:
            snapshot = await self.rounds.go()
            self._compute(snapshot)
        self._first.set()
        self.certificates.begin(self._addresses(snapshot))
        await self._sweep(snapshot)
        values = figures_of(
            snapshot, self.rates, self.lag_ages, dead_letters(snapshot, self.status)
        )
        self.trends.add(values)
        self._memo.clear()
        # Requests of open tabs leave cycles behind, which the collector of a server finds late.
        gc.collect(1)
        named = {f"{self.name}/{series}": value for series, value in values.items()}
        await asyncio.to_thread(self._remember, snapshot.at_ms, named)

    async def refresh(self) -> None:
        """Something was changed by way of this dashboard: look at once, so that the next page shows it."""
        self.rounds.want_definitions()
        async with self._turn:
            self._compute(await self.rounds.go())

    def _addresses(self, snapshot: Snapshot) -> list[str]:
        """Of all servers."""
        rounds = self.rounds
        brokers = [one.place.address for one in snapshot.brokers]
        return [*brokers, *rounds.name_servers, *(one.address for one in rounds.controllers)]

    def _remember(self, at_ms: int, values: dict[str, float]) -> None:
        self.history.add(at_ms, values)
        # What servers told is summed up by now, and large answers are no longer needed.
        give_free_blocks_back()
        now = self._clock.monotonic()
        if now - self._pruned_at >= PRUNE_SECONDS:
            self._pruned_at = now
            self.history.prune(at_ms)

    def _compute(self, snapshot: Snapshot) -> None:
        at_ms, before = self._ends
        ends = {name: state.end for name, state in snapshot.topics.items() if state.end is not None}
        seconds = (snapshot.at_ms - at_ms) / 1000
        if before and seconds > 0:
            self.rates = {
                name: max(end - before[name], 0) / seconds
                for name, end in ends.items()
                if name in before
            }
        self._ends = snapshot.at_ms, ends
        self._behind = {
            name: self._behind.get(name, snapshot.at_ms if at_ms else 0)
            for name, group in snapshot.groups.items()
            if group.lag > 0
        }
        self.lag_ages = lag_ages(snapshot, self._behind)
        self._memo.clear()

    async def _sweep(self, snapshot: Snapshot) -> None:
        groups = snapshot.groups
        lagging = [name for name, group in groups.items() if group.lag > 0]
        await self.members.go(groups, first=lagging)
        topics = [
            name for name in snapshot.topics if snapshot.kind_of(name) in (NORMAL, DEAD_LETTER)
        ]
        letters = [name for name in topics if snapshot.kind_of(name) == DEAD_LETTER]
        await self.status.go(topics, first=letters)

    async def _members(self, group: str) -> Members:
        """Raises CometError: nobody is known, and a server did not say."""
        found = await online(self.admin, group, self.proxies)
        if found.connection is not None:
            return Members.of(found.connection)
        for error in found.failed.values():
            raise error
        return NOBODY

    async def _fill(self, topic: str) -> Fill | None:
        failed: Collection[str] = ()
        try:
            told = await self.admin.topics.status(topic)
        except NoRoute:
            now = None
        else:
            now, failed = Fill.of(told), told.failed
        missing = {
            one.place.broker_name
            for one in self.snapshot.masters
            if one.silent_since_ms is not None or one.place.address in failed
        }
        found = self.status.get(topic)
        before = found.value if found else None
        if now is None and not (before and missing & before.by_broker.keys()):
            return None
        return (now or EMPTY).completed_by(before, missing) if missing else now
