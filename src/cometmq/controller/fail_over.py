"""Masters that are gone: notices it, and has another one elected.

A broker is gone when its connection is lost or its heartbeats stop. Groups without a living master are searched for
again and again, so an election that could not be held is held later. Of several controllers only the leader does so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from cometmq.base.errors import CometError
from cometmq.base.ports import Clock
from cometmq.controller.controller_config import LiveConfig
from cometmq.controller.decision_store import DecisionStore
from cometmq.controller.election import ElectionRequest, Verdict
from cometmq.controller.elections import Elections
from cometmq.controller.group import Group
from cometmq.controller.liveness import Liveness

_LATE_FACTOR: Final = 3

_log = logging.getLogger("cometmq.controller")


class FailOver:
    """At most one election for each group is under way."""

    def __init__(
        self,
        store: DecisionStore,
        liveness: Liveness,
        elections: Elections,
        config: LiveConfig,
        clock: Clock,
        leads: Callable[[], bool],
    ) -> None:
        self._store = store
        self._liveness = liveness
        self._elections = elections
        self._config = config
        self._clock = clock
        self._leads = leads
        self._scanned_at = clock.monotonic()
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._told: dict[str, str] = {}
        """Why a group has no master, as the log says already."""

    def connection_lost(self, connection: object) -> None:
        for broker_name, broker_id in self._liveness.hang_up(connection):
            self._gone(broker_name, broker_id, "connection lost")

    def scan_brokers(self) -> None:
        """Find brokers that have gone silent. Call it every ``scanNotActiveBrokerInterval``."""
        now = self._clock.monotonic()
        late = now - self._scanned_at
        self._scanned_at = now
        # If this process itself was stopped (a suspended machine, a debugger), all brokers seem silent while their
        # heartbeats wait in our socket buffers. Read those first.
        if late > _LATE_FACTOR * self._config.current.scan_interval_ms / 1000:
            _log.warning("scan for silent brokers late seconds=%d: left out once", late)
            return
        for lost in self._liveness.silent(now):
            self._gone(lost.broker_name, lost.broker_id, f"silent for {lost.silent_seconds:.0f} s")

    def lead(self) -> None:
        """This controller leads from now on. What it missed before, it must not take for silence."""
        self._liveness.watch(self._clock.monotonic())
        self.scan_masters()

    def scan_masters(self) -> None:
        """Find groups that need a master. Call it every ``scanInactiveMasterInterval``."""
        if not self._leads():
            return
        now = self._clock.monotonic()
        for broker_name, held in self._store.known().items():
            group = held.group
            if not group.is_new and self._needs_master(group, now):
                self._start(broker_name)

    async def stop(self) -> None:
        for task in self._under_way.values():
            task.cancel()
        if self._under_way:
            await asyncio.wait(self._under_way.values())

    def _needs_master(self, group: Group, now: float) -> bool:
        """Also if brokers know of elections that are not known here: an operator has to read that in the log."""
        living = self._liveness.living(group, now)
        return bool(living.reports) and (
            not living.may_include(group.master_id) or living.newest_epoch > group.master_epoch
        )

    def _gone(self, broker_name: str, broker_id: int, reason: str) -> None:
        held = self._store.known().get(broker_name)
        is_master = held is not None and held.group.master_id == broker_id
        _log.info(
            "broker gone name=%s id=%d master=%s reason=%s",
            broker_name,
            broker_id,
            is_master,
            reason,
        )
        if is_master and self._leads():
            self._start(broker_name)

    def _start(self, broker_name: str) -> None:
        if broker_name not in self._under_way:
            task = asyncio.get_running_loop().create_task(self._elect(broker_name))
            self._under_way[broker_name] = task
            task.add_done_callback(lambda _: self._under_way.pop(broker_name, None))

    async def _elect(self, broker_name: str) -> None:
        try:
            outcome = await self._elections.hold(broker_name, ElectionRequest())
        except CometError as error:
            if self._told.get(broker_name) != str(error):
                self._told[broker_name] = str(error)
                _log.error("election failed name=%s reason=%s", broker_name, error)
            return
        if outcome.election.verdict is not Verdict.NO_CANDIDATE:
            self._told.pop(broker_name, None)
        elif self._told.get(broker_name) != outcome.election.reason:
            self._told[broker_name] = outcome.election.reason
            _log.warning("no master name=%s reason=%s", broker_name, outcome.election.reason)
