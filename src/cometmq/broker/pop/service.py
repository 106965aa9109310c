"""POP consumption as a part of the broker: puts its pieces together, starts and stops them."""

from __future__ import annotations

import logging
from typing import Final

from cometmq.base.errors import CometError
from cometmq.base.ports import Clock
from cometmq.broker.live_config import LiveConfig
from cometmq.broker.pop.names import revive_topic
from cometmq.broker.pop.pops import Pops
from cometmq.broker.pop.positions import PopPositions
from cometmq.broker.pop.revival import Revival
from cometmq.broker.pop.revive_log import ReviveLog
from cometmq.broker.schedule.delivery import Timer, Timers
from cometmq.broker.topic_creation import TopicCreation
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.groups import GroupTable
from cometmq.store.meta.offsets import OffsetTable

log = logging.getLogger("cometmq.broker")

MARK_SECONDS: Final = 0.5
"""How often positions that have become safe are handed to the table of offsets."""
RETRY_TIMES_MAX: Final = 16
"""Of a group that is no longer known."""


class PopService:
    """``start`` it once; ``pops`` works from then on until ``stop``."""

    def __init__(
        self,
        *,
        live: LiveConfig,
        store: MessageStore,
        offsets: OffsetTable,
        groups: GroupTable,
        creation: TopicCreation,
        clock: Clock,
        timers: Timers,
    ) -> None:
        identity = live.current.identity
        self._store = store
        self._timers = timers
        self._timer: Timer | None = None
        self._is_failing = False
        revive_log = ReviveLog(
            topic=revive_topic(identity.cluster_name),
            broker_name=identity.broker_name,
            store=store,
            clock=clock,
            make_topic=creation.restore,
        )

        def times_max(group: str) -> int:
            known = groups.get(group)
            return RETRY_TIMES_MAX if known is None else known.retry_max_times

        self.revival = Revival(
            store=store,
            log=revive_log,
            clock=clock,
            timers=timers,
            times_max=times_max,
            is_retry_v2=lambda: live.current.pop.is_retry_v2,
            restore_topic=creation.restore,
        )
        self.pops = Pops(
            store=store,
            log=revive_log,
            positions=PopPositions(offsets),
            clock=clock,
            wake=self.revival.added,
        )

    def start(self) -> None:
        """Go on where the last run of this broker stopped, however it stopped."""
        self.pops.recover()
        self._store.arrivals.append(self.pops)
        self.revival.start(self.pops)
        self._timer = self._timers.call_later(MARK_SECONDS, self._tick)

    def stop(self) -> None:
        """Give nothing back any more, and hand over the positions, for which the log must be on the disk."""
        self.revival.stop()
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        if self.pops.is_unsaved:
            try:
                self._store.flush()
                self.pops.mark()
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
        self._timer = self._timers.call_later(MARK_SECONDS, self._tick)

    def __repr__(self) -> str:
        return f"<PopService {self.pops!r} {self.revival!r}>"
