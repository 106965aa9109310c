"""One round of questions to the servers: a bounded number for each, whatever they hold.

A broker that is slow delays nobody: the round goes on without it, and what it last told stays in use.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from sys import intern
from typing import Any, Final, TypeVar

from cometmq.admin.admin import Admin
from cometmq.admin.fan_out import ByServer
from cometmq.admin.servers.figures import BrokerFigures
from cometmq.admin.target import Place, Target
from cometmq.base.errors import CometError, RemotingError
from cometmq.base.ports import Clock
from cometmq.dashboard.bodies.common import Gap
from cometmq.dashboard.watch.lags import sums_of
from cometmq.dashboard.watch.snapshot import BrokerState, Snapshot, put_together
from cometmq.protocol.reply_errors import BrokerReplyError

log = logging.getLogger("cometmq.dashboard")

T = TypeVar("T")

DEFINITIONS_SECONDS: Final = 30.0
"""Topics, groups and settings are asked for so often, and after each change."""
SHARE_MAX: Final = 20
"""A broker that takes a second to tell its lags is asked for them every 20 seconds at most."""
PATIENCE_SECONDS: Final = 2.5
"""A round waits so long; who is later is shown in the next one."""
FORGET_MS: Final = 24 * 3600 * 1000
"""A broker that name servers no longer know is shown as missing for so long."""
LAGS_SECONDS: Final = 15.0
"""How long a broker may take to look at all groups; RocketMQ reads a message for each position."""
PROBLEM_CHARS_MAX: Final = 300
SHARED_MAX: Final = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    address: str
    is_leader: bool
    problem: str


class Rounds:
    """Owned by the event loop. ``snapshot`` is what the last round found."""

    def __init__(
        self, admin: Admin, clock: Clock, *, name_servers: str, has_controllers: bool
    ) -> None:
        self.snapshot = Snapshot(at_ms=0)
        self._admin = admin
        self._clock = clock
        self._name_servers = name_servers
        self._has_controllers = has_controllers
        self._brokers: dict[tuple[str, str, int], _Broker] = {}
        self.lost: tuple[int, str] | None = None
        """Since when no name server answers, and why."""
        self.name_servers: dict[str, str] = {}
        """What is wrong with each, by address; empty if it answers."""
        self.controllers: list[Controller] = []
        self._others_at = 0.0
        self._shared = _Shared()

    async def go(self) -> Snapshot:
        """Ask, wait a little, put together. Never raises for what servers do."""
        await self._find_brokers()
        running = [
            broker.asking for one in self._brokers.values() if (broker := one.begin()).asking
        ]
        if running:
            await asyncio.wait(running, timeout=PATIENCE_SECONDS)
        await self._find_in_sync()
        await self._ask_others()
        self.snapshot = put_together(
            [one.state for one in self._brokers.values()], list(self._gaps()), self._clock.wall_ms()
        )
        return self.snapshot

    def want_definitions(self) -> None:
        """Something was changed: ask for topics, groups and settings in the next round."""
        for one in self._brokers.values():
            one.definitions_at = 0.0

    async def stop(self) -> None:
        tasks = [one.asking for one in self._brokers.values() if one.asking is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _find_brokers(self) -> None:
        try:
            places = await self._admin.brokers.places(Target(with_slaves=True))
        except CometError as error:
            if not isinstance(error, RemotingError) and "there is none" in str(error):
                places = []
            else:
                since = self.lost[0] if self.lost else self._clock.wall_ms()
                self.lost = since, str(error)[:PROBLEM_CHARS_MAX]
                return
        self.lost = None
        now_ms = self._clock.wall_ms()
        known = {(one.cluster, one.broker_name, one.broker_id): one for one in places}
        for key, place in known.items():
            broker = self._brokers.get(key)
            if broker is None or broker.state.place.address != place.address:
                self._brokers[key] = _Broker(place, self._admin, self._clock, self._shared)
        for key, broker in list(self._brokers.items()):
            if key in known:
                continue
            if broker.state.silent_since_ms is None:
                broker.state.silent_since_ms = now_ms
                broker.state.problem = "no name server knows it any more"
            elif now_ms - broker.state.silent_since_ms > FORGET_MS:
                del self._brokers[key]
        self._brokers = dict(sorted(self._brokers.items()))

    async def _ask_others(self) -> None:
        """Name servers and controllers, now and then: whether each of them answers."""
        now = self._clock.monotonic()
        if now < self._others_at:
            return
        self._others_at = now + DEFINITIONS_SECONDS
        told = await self._admin.name_servers.settings()
        self.name_servers = {
            address: _problem(told.failed.get(address))
            for address in self._admin.name_servers.addresses
        }
        if not self._has_controllers:
            return
        found = await self._admin.controllers.metadata()
        leaders = {one.controller_leader_address for one in found.values()}
        self.controllers = [
            Controller(address=address, is_leader=address in leaders, problem="")
            for address in found.done
        ] + [
            Controller(address=address, is_leader=False, problem=_problem(error))
            for address, error in found.failed.items()
        ]

    async def _find_in_sync(self) -> None:
        """What controllers say about replicas, if there are any."""
        if not self._has_controllers:
            return
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                states = await self._admin.controllers.sync_states()
        except (CometError, TimeoutError) as error:
            log.debug("controllers not asked reason=%s", error)
            for one in self._brokers.values():
                one.state.in_sync = None
            return
        for one in self._brokers.values():
            told = states.get(one.state.place.broker_name)
            address = one.state.place.address
            one.state.in_sync = (
                None
                if told is None
                else any(replica.broker_address == address for replica in told.in_sync_replicas)
            )

    def _gaps(self) -> Iterable[Gap]:
        if self.lost is not None:
            since, problem = self.lost
            yield Gap(server=self._name_servers, problem=problem, since_ms=since)
        for one in self._brokers.values():
            state = one.state
            if state.silent_since_ms is not None:
                server = f"{state.place.broker_name}:{state.place.broker_id}"
                yield Gap(server=server, problem=state.problem, since_ms=state.silent_since_ms)


class _Shared:
    """Definitions that brokers have alike, which most are: one object for all of them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Any] = {}

    def of(self, kind: str, table: dict[str, T]) -> dict[str, T]:
        found: dict[str, T] = {}
        for name, one in table.items():
            known = self._known.get((kind, name))
            if known != one:
                known = self._known[kind, name] = one
            found[intern(name)] = known
        if len(self._known) > SHARED_MAX:
            self._known.clear()
        return found


class _Broker:
    """Questions to one broker, one round of them at a time."""

    def __init__(self, place: Place, admin: Admin, clock: Clock, shared: _Shared) -> None:
        self._shared = shared
        self.state = BrokerState(place=place)
        self.asking: asyncio.Task[None] | None = None
        self.definitions_at = 0.0
        self._lags_at = 0.0
        self._admin = admin
        self._clock = clock
        self._target = Target(address=place.address)

    def begin(self) -> _Broker:
        if self.asking is None or self.asking.done():
            self.asking = asyncio.create_task(self._ask())
        return self

    async def _ask(self) -> None:
        state = self.state
        try:
            await self._tell_all()
        except CometError as error:
            if state.silent_since_ms is None:
                state.silent_since_ms = self._clock.wall_ms()
                log.warning("broker silent name=%s reason=%s", state.place.broker_name, error)
            state.problem = str(error)[:PROBLEM_CHARS_MAX]
        else:
            state.silent_since_ms, state.problem = None, ""

    async def _tell_all(self) -> None:
        admin, target, state = self._admin, self._target, self.state
        table = await _one(admin.brokers.runtime(target))
        state.figures = BrokerFigures(table)
        now = self._clock.monotonic()
        if now >= self.definitions_at:
            state.settings = await _one(admin.brokers.settings(target))
            if state.place.is_master:
                topics = await _one(admin.topics.definitions(target))
                groups = await _one(admin.groups.definitions(target))
                state.topics = self._shared.of("topic", topics)
                state.groups = self._shared.of("group", groups)
            self.definitions_at = now + DEFINITIONS_SECONDS
        if state.place.is_master and now >= self._lags_at:
            asked_at = self._clock.monotonic()
            state.lags = sums_of(
                await _one(admin.brokers.consume_stats(target, timeout=LAGS_SECONDS))
            )
            self._lags_at = now + (self._clock.monotonic() - asked_at) * SHARE_MAX
        state.told_ms = self._clock.wall_ms()


def _problem(error: CometError | None) -> str:
    """Whoever refuses answers, too."""
    if error is None or isinstance(error, BrokerReplyError):
        return ""
    return str(error)[:PROBLEM_CHARS_MAX]


async def _one(asked: Awaitable[ByServer[T]]) -> T:
    """The answer of the only server that was asked."""
    told = await asked
    for error in told.failed.values():
        raise error
    return next(iter(told.done.values()))
