"""Decisions on one group in memory, by RocketMQ's rules, and the way of a broker's questions to them.

A question or its answer may be lost, and a lost question may be answered all the same, seconds after the broker gave
it up. Questions go through controllers. One that is cut off from the decisions tells what it remembers, and refuses
everything else; one that fails half way has it decided, and cannot say so. The rules are those of spec and book, not
the code of ``cometmq.controller``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final, NoReturn, TypeVar

from cometmq.base.errors import CallTimedOut
from cometmq.broker.controller_client.group_view import GroupView
from cometmq.broker.controller_client.identity_file import Applied
from cometmq.broker.replication.autoswitch.sync_state import Proposal
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.headers.namesrv import BrokerHeartbeatHeader
from cometmq.protocol.reply_errors import BrokerReplyError

CALL_SECONDS: Final = 3.0
LATE_SECONDS: Final = 8.0
LATENCY_SECONDS: Final = 0.004

T = TypeVar("T")


@dataclass(slots=True)
class Seat:
    """A controller, as its way to the decisions goes.

    Args:
        remembers: it is cut off since that was so.
        fails_half_way: its next question is decided, and then it is cut off.
    """

    remembers: GroupView | None = None
    fails_half_way: bool = False


@dataclass(slots=True)
class Heard:
    at: float
    epoch: int
    max_offset: int
    timeout: float


@dataclass(slots=True)
class Elector:
    """
    Args:
        now: monotonic seconds.
        on_elected: told the address of each new master.
    """

    now: Callable[[], float]
    on_elected: Callable[[str], None]
    addresses: dict[int, str] = field(default_factory=dict)
    codes: dict[int, str] = field(default_factory=dict)
    heard: dict[int, Heard] = field(default_factory=dict)
    view: GroupView = field(default_factory=GroupView)
    seats: list[Seat] = field(default_factory=lambda: [Seat()])

    @property
    def is_away(self) -> bool:
        """No controller reaches the decisions."""
        return all(seat.remembers is not None for seat in self.seats)

    @property
    def living(self) -> set[int]:
        now = self.now()
        return {one for one, heard in self.heard.items() if now - heard.at <= heard.timeout}

    def apply(self, applied: Applied) -> None:
        if self.codes.setdefault(applied.broker_id, applied.check_code) != applied.check_code:
            raise _refusal(ResponseCode.CONTROLLER_BROKER_ID_INVALID)

    def register(self, broker_id: int, address: str) -> GroupView:
        self.addresses[broker_id] = address
        if self.view.master_id in self.living:
            return self.view
        return GroupView(members=self.view.members, set_epoch=self.view.set_epoch)

    def beat(self, header: BrokerHeartbeatHeader) -> None:
        assert header.broker_id is not None
        assert header.epoch is not None
        assert header.max_offset is not None
        assert header.heartbeat_timeout_mills is not None
        if header.broker_id in self.addresses:
            self.heard[header.broker_id] = Heard(
                self.now(), header.epoch, header.max_offset, header.heartbeat_timeout_mills / 1000
            )

    def elect(self, asking: int | None, *, is_designated: bool = False) -> GroupView:
        """An election. Raises BrokerReplyError when nobody can be elected."""
        view, living = self.view, self.living
        candidates = view.members & living
        if not view.epoch and asking is not None:
            candidates = frozenset({asking})
        elif view.master_id in candidates and not (is_designated and asking != view.master_id):
            return view
        if is_designated:
            candidates &= {asking}
        if not candidates:
            raise _refusal(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED)
        chosen = max(candidates, key=self._rank)
        self.view = GroupView(
            view.epoch + 1,
            chosen,
            self.addresses[chosen],
            frozenset({chosen}),
            view.set_epoch + 1,
        )
        self.on_elected(self.addresses[chosen])
        return self.view

    def alter(self, proposal: Proposal, broker_id: int, epoch: int) -> tuple[frozenset[int], int]:
        view = self.view
        if proposal.members == view.members:
            raise _refusal(ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED)
        if broker_id != view.master_id:
            raise _refusal(ResponseCode.CONTROLLER_INVALID_MASTER)
        if epoch != view.epoch:
            raise _refusal(ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH)
        if proposal.epoch != view.set_epoch:
            raise _refusal(ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH)
        if not proposal.members <= self.living:
            raise _refusal(ResponseCode.CONTROLLER_BROKER_NOT_ALIVE)
        assert broker_id in proposal.members, "a master without itself"
        self.view = view._replace(members=proposal.members, set_epoch=view.set_epoch + 1)
        return self.view.members, self.view.set_epoch

    def scan(self) -> None:
        """A master that is silent is replaced, if somebody can be."""
        if self.is_away:
            return
        if self.view.master_id is not None and self.view.master_id not in self.living:
            try:
                self.elect(None)
            except BrokerReplyError:
                return

    def lost(self, address: str) -> None:
        """The connection that carried the heartbeats of a broker was closed."""
        for broker_id, known in self.addresses.items():
            if known == address:
                self.heard.pop(broker_id, None)

    def _rank(self, broker_id: int) -> tuple[int, int, int]:
        heard = self.heard.get(broker_id)
        return (heard.epoch, heard.max_offset, -broker_id) if heard else (-1, -1, -broker_id)


@dataclass(slots=True)
class Questions:
    """What a broker has in place of ``ControllerCalls``."""

    elector: Elector
    address: str
    random: Random
    is_heard: bool = True
    """Its questions arrive."""
    hears: bool = True
    """The answers do."""
    reached: list[Seat] = field(default_factory=list)
    """The controllers that it reaches."""
    count: int = 0
    answered_at: float = 0.0
    """When the last question was asked that was answered."""

    async def next_id(self) -> Applied:
        number = await self._ask(
            lambda: self._decided(lambda: max(self.elector.codes, default=0) + 1)
        )
        self.count += 1
        return Applied(number, f"{self.address};{self.count}")

    async def apply_id(self, applied: Applied) -> None:
        await self._ask(lambda: self._decided(lambda: self.elector.apply(applied)))

    async def register(self, broker_id: int) -> GroupView:
        return await self._ask(
            lambda: self._decided(lambda: self.elector.register(broker_id, self.address))
        )

    async def elect(self, broker_id: int) -> GroupView:
        return await self._ask(lambda: self._decided(lambda: self.elector.elect(broker_id)))

    async def group(self) -> GroupView:
        return await self._ask(self._told)

    async def alter(
        self, proposal: Proposal, broker_id: int, epoch: int
    ) -> tuple[frozenset[int], int]:
        return await self._ask(
            lambda: self._decided(lambda: self.elector.alter(proposal, broker_id, epoch))
        )

    async def beat(self, header: BrokerHeartbeatHeader) -> None:
        if self.is_heard:
            await self._travel()
            # All controllers hear it. Those that decide nothing now know it later, unless others decide meanwhile.
            if self.elector.is_away or any(seat.remembers is None for seat in self.reached):
                self.elector.beat(header)

    def _told(self) -> GroupView:
        remembered = [seat.remembers for seat in self.reached if seat.remembers is not None]
        if len(remembered) < len(self.reached):
            return self.elector.view
        return max(remembered, key=lambda view: view.epoch)._replace(is_certain=False)

    def _decided(self, decide: Callable[[], T]) -> T:
        """Carried out by the controller that is asked."""
        seat = self.reached[0] if len(self.reached) == 1 else self.random.choice(self.reached)
        if seat.remembers is not None:
            raise _refusal(ResponseCode.CONTROLLER_NOT_LEADER)
        before = self.elector.view
        decided = decide()
        if seat.fails_half_way:
            seat.fails_half_way = False
            seat.remembers = before
            raise _refusal(ResponseCode.SYSTEM_ERROR)
        return decided

    async def _ask(self, question: Callable[[], T]) -> T:
        asked_at = self.elector.now()
        await self._travel()
        if not self.is_heard:
            if self.random.random() < 0.5:
                asyncio.get_running_loop().call_later(
                    self.random.random() * LATE_SECONDS, _try, question
                )
            await self._give_up()
        try:
            return question()
        finally:
            await self._travel()
            if not self.hears:
                await self._give_up()
            self.answered_at = asked_at

    async def _travel(self) -> None:
        await asyncio.sleep(self.random.random() * LATENCY_SECONDS)

    async def _give_up(self) -> NoReturn:
        await asyncio.sleep(CALL_SECONDS)
        raise CallTimedOut("no answer", sent=True)


def _try(question: Callable[[], object]) -> None:
    """The answer comes to nobody."""
    try:
        question()
    except BrokerReplyError:
        return


def _refusal(code: ResponseCode) -> BrokerReplyError:
    return BrokerReplyError(int(code), "no", "controller")
