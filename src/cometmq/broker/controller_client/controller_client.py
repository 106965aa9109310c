"""Makes a broker what its controller says: gets an id, registers, asks who is the master, stands for election.

    no id -> applied for -> registered -> asked every few seconds, and at once when the controller gives notice

What follows from the answers is decided in ``standing``; ``role`` carries out what it comes to. Every second the broker
sends heartbeats, looks whether it is still certain to be the master, and proposes changes of the SyncStateSet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final, Protocol

from cometmq.base.errors import CometError
from cometmq.broker.config.config_slices import SLAVE, SYNC_MASTER
from cometmq.broker.controller_client.controller_calls import ControllerCalls
from cometmq.broker.controller_client.group_view import GroupView
from cometmq.broker.controller_client.identity_file import IdentityFile
from cometmq.broker.controller_client.standing import (
    BecomeMaster,
    BecomeSlave,
    Instruction,
    StandForElection,
    Standing,
    StepDown,
    TakeSet,
)
from cometmq.broker.core import BrokerCore
from cometmq.broker.replication.autoswitch.autoswitch import Autoswitch
from cometmq.broker.replication.autoswitch.sync_state import Proposal
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.headers.namesrv import BrokerHeartbeatHeader
from cometmq.protocol.reply_errors import BrokerReplyError

log = logging.getLogger("cometmq.broker")

TICK_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 1.0
QUESTIONS_PER_LEASE: Final = 3
LEASES_FOR_A_CHANGE: Final = 3
"""How long a broker may take to become what it should be before it falls silent."""

_REFUSALS: Final = range(
    ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH, ResponseCode.CONTROLLER_BROKER_ID_INVALID + 1
)
"""A controller's own codes: it has decided not to. After any other error it may have stored the decision."""

_UNKNOWN: Final = (
    ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST,
    ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
)


class RoleOfBroker(Protocol):
    """What is needed of ``role.Role``."""

    @property
    def is_settled(self) -> bool: ...

    async def unfence(self) -> None: ...

    def renew_reign(self) -> None: ...


class PlaceOfMaster(Protocol):
    """What is needed of ``ReplicationRoom``."""

    def expect(self, address: str | None) -> None: ...


class ControllerClient:
    """Does something between ``start`` and ``stop``, on one event loop."""

    def __init__(
        self,
        core: BrokerCore,
        switch: Autoswitch,
        calls: ControllerCalls,
        identity: IdentityFile,
        role: RoleOfBroker,
        replication: PlaceOfMaster,
    ) -> None:
        self._core = core
        self._switch = switch
        self._calls = calls
        self._identity = identity
        self._role = role
        self._replication = replication
        config = core.live.current.controller
        self.standing = Standing(config.heartbeat_timeout_ms / 1000)
        self._poll_seconds = (
            min(config.poll_ms, config.heartbeat_timeout_ms / QUESTIONS_PER_LEASE) / 1000
        )
        self._change_seconds_max = LEASES_FOR_A_CHANGE * config.heartbeat_timeout_ms / 1000
        self._settled_at = self._now()
        self._is_registered = False
        self._is_remembered = False
        self._told = ""
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._proposing: asyncio.Task[None] | None = None
        core.durability.is_proven = self._is_proven

    def load(self) -> None:
        """Raises ConfigError, CorruptFile: the file with the id cannot be used."""
        self._identity.applied()
        self._take_id(self._identity.load() or 0)

    def start(self) -> None:
        self._tasks = [
            self._task(self._ask_on(), "questions"),
            self._task(self._beat_on(), "heartbeats"),
            self._task(self._tick_on(), "lease"),
        ]

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        if self._proposing is not None:
            tasks.append(self._proposing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def notice(self) -> None:
        """Something has changed, somebody says. What counts is what the controller answers."""
        self._wake.set()

    # Who is the master.

    async def _ask_on(self) -> None:
        while True:
            self._wake.clear()
            pause = self._poll_seconds
            try:
                await (self._ask() if self._is_registered else self._join())
                self._note("")
            except CometError as error:
                self._note(str(error))
                pause = RETRY_SECONDS
            except Exception:
                log.exception("controller not asked")
                pause = RETRY_SECONDS
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _join(self) -> None:
        if not self.standing.own_id:
            applied = self._identity.applied() or await self._calls.next_id()
            self._identity.apply(applied)
            try:
                await self._calls.apply_id(applied)
            except BrokerReplyError:
                self._identity.withdraw()
                raise
            self._identity.grant(applied.broker_id)
            self._take_id(applied.broker_id)
            log.info("the controller gave this broker its id id=%d", applied.broker_id)
        asked_at = self._now()
        view = await self._calls.register(self.standing.own_id)
        self._is_registered = True
        # Before the election: only who lives can be elected.
        await self._calls.beat(self._heartbeat())
        if view.master_id is None:
            # Nothing is said of epochs then.
            self.standing.answered(asked_at)
            await self._carry_out(StandForElection())
        else:
            await self._take(view, asked_at)

    async def _ask(self) -> None:
        asked_at = self._now()
        try:
            view = await self._calls.group()
        except BrokerReplyError as error:
            if error.code in _UNKNOWN:
                self._is_registered = False
            raise
        if view.is_certain == self._is_remembered:
            self._is_remembered = not view.is_certain
            log.warning(
                "no controller reaches its store: nothing changes until one does"
                if self._is_remembered
                else "a controller reaches its store again"
            )
        await self._take(view, asked_at)

    async def _take(self, view: GroupView, asked_at: float) -> None:
        for instruction in self.standing.told(view, asked_at):
            await self._carry_out(instruction)

    async def _carry_out(self, instruction: Instruction) -> None:
        live, own_id = self._core.live, self.standing.own_id
        match instruction:
            case BecomeMaster(view):
                log.warning("elected epoch=%d set=%s", view.epoch, sorted(view.members))
                self._replication.expect(None)
                try:
                    self._switch.elected(view.epoch, view.members, view.set_epoch)
                    self._role.renew_reign()
                except CometError as error:
                    for consequence in self.standing.failed(str(error)):
                        await self._carry_out(consequence)
                    raise
                live.take_role(SYNC_MASTER, own_id)
            case BecomeSlave(view):
                log.warning(
                    "another is the master address=%s epoch=%d", view.master_address, view.epoch
                )
                live.take_role(SLAVE, own_id)
                self._replication.expect(view.master_address)
                await self._role.unfence()
            case TakeSet(view, asked_at):
                self._switch.sync.told(view.members, view.set_epoch, asked_at)
                self._switch.set_changed()
            case StepDown(reason):
                self._step_down(reason)
            case StandForElection() if live.current.controller.is_learner:
                pass
            case StandForElection():
                asked_at = self._now()
                view = await self._calls.elect(own_id)
                if view.master_id is not None:
                    await self._take(view, asked_at)

    def _step_down(self, reason: str) -> None:
        log.error("no longer the master reason=%s", reason)
        self._core.live.take_role(SLAVE, self.standing.own_id)
        self._replication.expect(None)

    # Every second.

    async def _beat_on(self) -> None:
        while True:
            try:
                if self._is_registered and self._is_well():
                    await self._calls.beat(self._heartbeat())
            except Exception:
                log.exception("no heartbeat to the controllers")
            await asyncio.sleep(TICK_SECONDS)

    async def _tick_on(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            try:
                await self._tick(self._now())
            except CometError as error:
                log.error("epochs not noted reason=%s", error)
            except Exception:
                log.exception("lease not looked at")

    async def _tick(self, now: float) -> None:
        if self._role.is_settled:
            self._settled_at = now
        for instruction in self.standing.tick(now):
            await self._carry_out(instruction)
        if self.standing.is_master:
            proposal = self._switch.look(now)
            if proposal is not None:
                self._proposing = self._task(self._propose(proposal), "proposal")
        self._switch.tidy()

    async def _propose(self, proposal: Proposal) -> None:
        epoch, sync = self.standing.epoch, self._switch.sync
        try:
            members, set_epoch = await self._calls.alter(proposal, self.standing.own_id, epoch)
        except CometError as error:
            is_refused = isinstance(error, BrokerReplyError) and error.code in _REFUSALS
            log.warning(
                "SyncStateSet %s set=%s reason=%s",
                "not changed" if is_refused else "not known",
                sorted(proposal.members),
                error,
            )
            if self.standing.epoch == epoch:
                if is_refused:
                    sync.refused(self._now())
                else:
                    sync.unanswered()
            if is_refused:
                self._wake.set()
        else:
            log.info("SyncStateSet changed set=%s epoch=%d", sorted(members), set_epoch)
            if self.standing.epoch == epoch:
                sync.accepted(members, set_epoch, self._now())
        self._switch.set_changed()

    def _is_well(self) -> bool:
        """A broker that cannot take up its role, for want of space for example, lets the controller elect another."""
        now = self._now()
        return self.standing.is_in_touch(now) and now - self._settled_at < self._change_seconds_max

    def _heartbeat(self) -> BrokerHeartbeatHeader:
        core, config = self._core, self._core.live.current
        return BrokerHeartbeatHeader(
            cluster_name=config.identity.cluster_name,
            broker_addr=core.address,
            broker_name=config.identity.broker_name,
            broker_id=self.standing.own_id,
            epoch=self._switch.epochs.table.last_number,
            max_offset=core.store.max_physical,
            confirm_offset=self._switch.confirmed,
            heartbeat_timeout_mills=config.controller.heartbeat_timeout_ms,
            election_priority=config.controller.election_priority,
        )

    # Inside.

    def _take_id(self, broker_id: int) -> None:
        self.standing.own_id = self._switch.broker_id = broker_id
        if broker_id:
            self._core.live.take_role(SLAVE, broker_id)

    def _is_proven(self) -> bool:
        return self.standing.is_proven(self._now())

    def _now(self) -> float:
        return self._core.clock.monotonic()

    def _task(self, what: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(what, name=f"cometmq-controller-{name}")

    def _note(self, reason: str) -> None:
        """In the log, once for each reason in a row."""
        if reason and reason != self._told:
            log.warning("no word from the controller reason=%s", reason)
        self._told = reason

    def __repr__(self) -> str:
        return f"<ControllerClient {self.standing}>"
