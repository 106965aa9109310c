"""Elections: reads who is alive, lets ``election`` decide, stores it, and has the brokers told.

Called by ``broker_requests`` for brokers and operators, and by ``fail_over`` when a master is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from cometmq.base.ports import Clock
from cometmq.controller.controller_config import LiveConfig
from cometmq.controller.decision_store import DecisionStore, read, settle
from cometmq.controller.decisions import check_cluster
from cometmq.controller.election import Election, ElectionRequest, Verdict, elect
from cometmq.controller.group import Decision, Group, Living
from cometmq.controller.liveness import Liveness

Tell = Callable[[Group, Collection[int]], None]
"""Tells these brokers of a group who its master is now."""

Prepare = Callable[[Group, int], Awaitable[None]]
"""Has the master of a group get ready for this successor. An election is safe without it, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An election that was held, and the group as it is afterwards."""

    election: Election
    group: Group


class Elections:
    def __init__(
        self,
        store: DecisionStore,
        liveness: Liveness,
        config: LiveConfig,
        clock: Clock,
        tell: Tell,
        prepare: Prepare,
    ) -> None:
        self._store = store
        self._liveness = liveness
        self._config = config
        self._clock = clock
        self._tell = tell
        self._prepare = prepare
        self.outcomes: Counter[Verdict] = Counter()
        """Elections that were held."""

    async def hold(
        self, broker_name: str, request: ElectionRequest, *, cluster: str | None = None
    ) -> Outcome:
        """Raises Refused."""
        if request.is_designated and request.broker_id is not None:
            await self._prepare_master(broker_name, request.broker_id)

        def decide(group: Group | None) -> Decision[Election]:
            if cluster is not None:
                check_cluster(group, cluster)
            return elect(
                group,
                request,
                self._living(group),
                unclean_allowed=self._config.current.unclean_allowed,
            )

        decision = await settle(self._store, broker_name, decide)
        group = decision.group
        assert group is not None
        self.outcomes[decision.answer.verdict] += 1
        if decision.answer.verdict is Verdict.ELECTED:
            self._tell(group, self._living(group).reports.keys())
        return Outcome(election=decision.answer, group=group)

    async def _prepare_master(self, broker_name: str, successor: int) -> None:
        group = await read(self._store, broker_name)
        if (
            group is not None
            and successor in group.sync_state_set - {group.master_id}
            and {group.master_id, successor} <= self._living(group).reports.keys()
        ):
            await self._prepare(group, successor)

    def _living(self, group: Group | None) -> Living:
        return self._liveness.living(group, self._clock.monotonic())
