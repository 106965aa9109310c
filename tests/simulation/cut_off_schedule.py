"""As ``elected_schedule``, with controllers that lose their way to the decisions, and brokers that reach one only."""

from __future__ import annotations

from tests.simulation.elected_schedule import Schedule
from tests.simulation.mishaps import Event


class CutOffSchedule(Schedule):
    CONTROLLERS = 2

    def _more_events(self) -> list[Event]:
        return [
            *(self._cut_off, self._cut_off, self._fail_half_way),
            *(self._reach_one, self._reach_one, self._reach_all),
        ]

    def _cut_off(self) -> str | None:
        elector = self.world.elector
        number = self.random.randrange(self.CONTROLLERS)
        seat = elector.seats[number]
        if seat.remembers is None:
            seat.remembers = elector.view
        return f"controller {number} remembers {seat.remembers}"

    def _fail_half_way(self) -> str | None:
        """All of them, often: what they share is lost."""
        for seat in self.world.elector.seats:
            seat.fails_half_way = True
            if self.random.random() < 0.3:
                break
        return "controllers fail half way"

    def _reach_one(self) -> str | None:
        broker = self.random.choice(self.world.members)
        number = self.random.randrange(self.CONTROLLERS)
        broker.questions.reached = [self.world.elector.seats[number]]
        return f"{broker.number} reaches controller {number}"

    def _reach_all(self) -> str | None:
        self.world.reach_all()
        return "all controllers reached"
