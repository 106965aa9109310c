"""What waits, by the clock that it waits for: one index of ``store.timer`` for each, as if no clock ever jumped.

    wall     messages with a time of delivery: due when the wall clock shows it
    others   messages with a delay: due when it has passed. The clock of such a lane shows what the wall clock did when
             the lane was made and goes on with the monotonic one, so nobody can set it

As long as nobody sets the wall clock there is one of the others. After a jump it shows another time than the wall
clock. Then a new one is made for what comes next, and the old one goes when it is empty. A time of delivery behind
what the wall lane has delivered, since the clock was ahead meanwhile, is counted as a delay.

While the broker is down the wall clock counts, but it does not count back: see ``Lanes.restore``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cometmq.base.milliseconds import begun_ms, passed_ms
from cometmq.base.ports import Clock, Files
from cometmq.store.timer.bucket_files import BucketFiles
from cometmq.store.timer.timer_checkpoint import LaneState
from cometmq.store.timer.waiting import Waiting

WALL: Final = 0
"""The number of the wall clock's lane."""
LANES_MAX: Final = 16
"""For a clock that is set all the time. Beyond it delays go by the wall clock, too."""
PRECISION_MS: Final = 20
"""Differences up to this are no jump: it takes a moment to read two clocks."""
_READ_MS_MAX: Final = 5
_READ_TRIES: Final = 3


class Lane:
    def __init__(
        self, number: int, clock: Clock, files: BucketFiles, waiting: Waiting, ahead_ms: int = 0
    ) -> None:
        self.number = number
        self.files = files
        self.waiting = waiting
        self.ahead_ms = ahead_ms
        """How far its clock is ahead of the monotonic one; of no meaning for the wall's lane."""
        self._clock = clock

    def now_ms(self) -> int:
        """What its clock shows."""
        if self.number == WALL:
            return self._clock.wall_ms()
        return passed_ms(self._clock) + self.ahead_ms

    def state(self) -> LaneState:
        now_ms = 0 if self.number == WALL else self.now_ms()
        return LaneState(
            number=self.number,
            done=self.waiting.done,
            counts=self.waiting.counts(),
            now_ms=now_ms,
            ahead_ms=now_ms and now_ms - self._clock.wall_ms(),
        )

    def __repr__(self) -> str:
        return f"<Lane {self.number} {self.waiting!r}>"


class Lanes:
    """By number. ``restore`` first; owned by the event loop."""

    def __init__(self, directory: str, files: Files, clock: Clock) -> None:
        self._directory = directory
        self._files = files
        self._clock = clock
        self._lanes: dict[int, Lane] = {}
        self._current: Lane
        self._next_number = WALL + 1
        """Never used again: the files of one that was let go are removed later."""

    def restore(self, states: list[LaneState]) -> None:
        """The lanes as they were saved; the wall's is one of them."""
        for state in states:
            lane = self._open(state)
            # Nothing was ever delivered or counted beyond what was saved, so a clock that was set back means no time.
            now_ms = max(self._clock.wall_ms() + state.ahead_ms, state.now_ms)
            lane.ahead_ms = now_ms - begun_ms(self._clock)
            self._lanes[lane.number] = lane
        for name in self._files.names(self._directory):
            if name.startswith("lane-") and name[5:] not in map(str, self._lanes):
                self._files.remove_tree(f"{self._directory}/{name}")
        self._current = self.wall
        self._next_number = max(self._lanes) + 1

    @property
    def wall(self) -> Lane:
        return self._lanes[WALL]

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._lanes.values())

    def __len__(self) -> int:
        return len(self._lanes)

    def for_delay(self) -> Lane:
        """Where a delay belongs that is counted from now on."""
        ahead_ms = self._wall_ahead_ms()
        for lane in (self._current, *self._lanes.values()):
            if lane.number != WALL and abs(lane.ahead_ms - ahead_ms) <= PRECISION_MS:
                self._current = lane
                return lane
        self._current = self._new(ahead_ms)
        return self._current

    def for_time(self, wake_ms: int) -> Lane:
        """Where a time of delivery belongs."""
        return self.for_delay() if self.wall.waiting.is_past(wake_ms) else self.wall

    def for_stored_delay(self, stored_ms: int) -> Lane:
        """Where a delay belongs that was counted from some time on in an earlier life."""
        if stored_ms <= self._clock.wall_ms() + PRECISION_MS:
            return self.for_delay()
        # The clock was set back since then. The one it was stored by had come that far.
        ahead_ms = stored_ms - begun_ms(self._clock)
        delays = [lane for lane in self if lane.number != WALL]
        foremost = max(delays, key=lambda lane: lane.ahead_ms, default=None)
        if foremost is None or foremost.ahead_ms <= self._wall_ahead_ms() + PRECISION_MS:
            return self._new(ahead_ms)
        foremost.ahead_ms = max(foremost.ahead_ms, ahead_ms)
        return foremost

    def let_go(self) -> list[Lane]:
        """Take out those that are empty and get nothing any more."""
        empty = [
            lane
            for lane in self
            if not lane.waiting.count and lane is not self._current and lane.number != WALL
        ]
        for lane in empty:
            del self._lanes[lane.number]
        return empty

    def remove(self, lane: Lane) -> None:
        """Remove the files of one that was let go."""
        lane.files.close()
        self._files.remove_tree(lane.files.directory)

    def close(self) -> None:
        for lane in self:
            lane.files.close()

    def _new(self, ahead_ms: int) -> Lane:
        if len(self) >= LANES_MAX:
            return self.wall
        lane = self._open(LaneState(number=self._next_number))
        self._next_number += 1
        lane.ahead_ms = ahead_ms
        self._lanes[lane.number] = lane
        return lane

    def _open(self, state: LaneState) -> Lane:
        part = "" if state.number == WALL else f"/lane-{state.number}"
        files = BucketFiles(self._directory + part, self._files)
        files.load(state.counts)
        waiting = Waiting(files, dict(state.counts), state.done)
        return Lane(state.number, self._clock, files, waiting)

    def _wall_ahead_ms(self) -> int:
        """How far the wall clock is ahead of the monotonic one."""
        for _ in range(_READ_TRIES):
            before_ms = begun_ms(self._clock)
            wall_ms = self._clock.wall_ms()
            after_ms = begun_ms(self._clock)
            if after_ms - before_ms <= _READ_MS_MAX:
                break
        return wall_ms - after_ms

    def __repr__(self) -> str:
        return f"<Lanes {list(self._lanes.values())}>"
