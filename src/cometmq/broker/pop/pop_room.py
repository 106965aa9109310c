"""The root of the room for POP consumption: what is out, the requests of consumers, and what comes back by itself.

Requests are served at any time. ``start`` and ``stop`` concern what only a master does: it gives back what nobody
acknowledged in time, and hands the positions of groups over to their table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from cometmq.base.errors import CometError
from cometmq.base.ports import Timer
from cometmq.broker.core import BrokerCore
from cometmq.broker.pop.ack_processor import PopAckProcessor
from cometmq.broker.pop.pop_processor import PopProcessor
from cometmq.broker.pop.pop_topics import revive_topic
from cometmq.broker.pop.pops import Pops
from cometmq.broker.pop.positions import PopPositions
from cometmq.broker.pop.revival import Revival
from cometmq.broker.pop.revive_log import ReviveLog
from cometmq.broker.request_ports import RequestPorts

log = logging.getLogger("cometmq.broker")

MARK_SECONDS: Final = 0.5
"""How often positions that have become safe are handed to the table of offsets."""
RETRY_TIMES_MAX: Final = 16
"""Of a group that is no longer known."""


class PopRoom:
    def __init__(self, core: BrokerCore) -> None:
        live, creation, groups = core.live, core.creation, core.groups
        self._store = core.store
        self._loop = core.loop
        self._timer: Timer | None = None
        self._is_failing = False
        revive_log = ReviveLog(
            topic=revive_topic(live.current.identity.cluster_name),
            broker_name=core.broker_name,
            store=core.store,
            clock=core.clock,
            make_topic=creation.restore,
        )

        def times_max(group: str) -> int:
            known = groups.get(group)
            return RETRY_TIMES_MAX if known is None else known.retry_max_times

        self.revival = Revival(
            store=core.store,
            log=revive_log,
            clock=core.clock,
            loop=core.loop,
            times_max=times_max,
            is_retry_v2=lambda: live.current.pop.is_retry_v2,
            restore_topic=creation.restore,
            stats=core.stats,
        )
        self.pops = Pops(
            store=core.store,
            log=revive_log,
            positions=PopPositions(core.offsets),
            clock=core.clock,
            counts=core.stats.pop,
            wake=self.revival.added,
        )
        self._requests = PopProcessor(
            live=live,
            pops=self.pops,
            topics=core.topics,
            creation=creation,
            filters=core.filters,
            stats=core.stats,
            clock=core.clock,
            loop=core.loop,
            reached=core.reached,
            times=core.times,
        )
        self.waiting = self._requests.waiting
        core.store.arrivals.append(self.waiting)
        self._acks = PopAckProcessor(
            live=live,
            pops=self.pops,
            store=core.store,
            topics=core.topics,
            durability=core.durability,
        )

    def register(self, ports: RequestPorts) -> None:
        ports.serve_reads(self._requests)
        ports.serve(self._acks)
        ports.on_close(self.waiting.forget)
        ports.on_drain(self.waiting.answer_all)

    def start(self) -> None:
        """Go on where the log says that it stopped last, however it stopped."""
        if self._timer is not None:
            return
        # Pops that were served while this was stopped; what the log does not say of them is known here alone.
        if self.pops.positions.is_waiting:
            self._flush_and(self.pops.settle)
        self.pops.recover()
        self._store.arrivals.append(self.pops)
        self.revival.start(self.pops)
        self._timer = self._loop.call_later(MARK_SECONDS, self._tick)

    def resume(self) -> None:
        """The same: nothing here runs in a task."""
        self.start()

    async def stop(self) -> None:
        """Give nothing back any more, and hand over the positions, for which the log must be on the disk."""
        if self._timer is None:
            return
        self.revival.stop()
        self._timer.cancel()
        self._timer = None
        self._store.arrivals.remove(self.pops)
        if self.pops.is_unsaved:
            self._flush_and(self.pops.mark)

    def _flush_and(self, hand_over: Callable[[], None]) -> None:
        try:
            self._store.flush()
            hand_over()
        except CometError as error:
            log.warning("pop positions not saved reason=%s; the next start finds them", error)

    def _tick(self) -> None:
        try:
            if self.pops.is_unsaved:
                self.pops.mark()
        except Exception as error:  # noqa: BLE001 - a timer's root: it must go on
            if not self._is_failing:
                self._is_failing = True
                log.error("pop positions not noted reason=%r; they will be tried again", error)
        else:
            self._is_failing = False
        self._timer = self._loop.call_later(MARK_SECONDS, self._tick)

    def __repr__(self) -> str:
        return f"<PopRoom {self.pops!r} {self.revival!r}>"
