"""How far the log is appended, flushed, replicated and dispatched. Marks only move forward.

A reply that must wait for durability parks a callback at its end offset. Any thread may advance a mark; callbacks only
run on the owner thread, through ``schedule`` (an event loop's ``call_soon_threadsafe``).
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

Schedule = Callable[[Callable[[], None]], None]


class _Waiter(NamedTuple):
    target: int
    deadline: float | None
    callback: Callable[[bool], None]


class Watermark:
    """One mark and its waiters. ``when`` and ``expire`` belong to the owner thread."""

    __slots__ = ("_on_wait", "_schedule", "_waiters", "value")

    def __init__(self, schedule: Schedule, value: int = 0) -> None:
        self.value = value
        self._schedule = schedule
        self._waiters: deque[_Waiter] = deque()
        self._on_wait: Callable[[], None] = _nothing

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    @property
    def next_target(self) -> int | None:
        """What the first of those who wait waits for."""
        return self._waiters[0].target if self._waiters else None

    def on_wait(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` (on the owner thread) when somebody starts to wait: the flusher may be asleep."""
        self._on_wait = callback

    def advance(self, value: int) -> None:
        """Move the mark forward; a smaller value changes nothing."""
        if value <= self.value:
            return
        self.value = value
        if self._waiters:
            self._schedule(self._release)

    def reset(self, value: int) -> None:
        """Set the mark at load time, before anybody waits."""
        assert not self._waiters, self
        self.value = value

    def when(
        self, target: int, callback: Callable[[bool], None], deadline: float | None = None
    ) -> None:
        """Call ``callback(True)`` once the mark has reached ``target``, or ``callback(False)`` past ``deadline``.

        A target already reached is answered before this returns.
        """
        if self.value >= target:
            callback(True)
            return
        waiter = _Waiter(target, deadline, callback)
        if self._waiters and self._waiters[-1].target > target:
            insort(self._waiters, waiter, key=_target)
        else:
            self._waiters.append(waiter)
        # The mark may have moved between the test above and the append, before the other thread could see the waiter:
        # check again now that it is visible.
        if self.value >= target:
            self._schedule(self._release)
        else:
            self._on_wait()

    def expire(self, now: float) -> None:
        """Answer False to all waiters whose deadline has passed."""
        late = [w for w in self._waiters if w.deadline is not None and w.deadline <= now]
        if not late:
            return
        gone = set(map(id, late))
        self._waiters = deque(w for w in self._waiters if id(w) not in gone)
        for waiter in late:
            waiter.callback(self.value >= waiter.target)

    def abandon(self) -> None:
        """Answer False to all waiters: the mark will not move any more."""
        waiters, self._waiters = self._waiters, deque()
        for waiter in waiters:
            waiter.callback(self.value >= waiter.target)

    def _release(self) -> None:
        waiters = self._waiters
        while waiters and waiters[0].target <= self.value:
            waiters.popleft().callback(True)

    def __repr__(self) -> str:
        return f"<Watermark {self.value} waiting={self.waiting}>"


class Watermarks:
    """The four marks of a store, as physical offsets."""

    __slots__ = ("appended", "dispatched", "flushed", "on_append", "replicated")

    def __init__(self, schedule: Schedule | None = None) -> None:
        self.on_append: Callable[[], None] = _nothing
        """Called on the owner thread after the log has grown."""
        schedule = schedule or _call
        self.appended = Watermark(schedule)
        self.flushed = Watermark(schedule)
        self.replicated = Watermark(schedule)
        self.dispatched = Watermark(schedule)

    def reset(self, value: int) -> None:
        """Everything up to ``value`` was recovered, so it is appended, on disk and in the queues."""
        for mark in (self.appended, self.flushed, self.replicated, self.dispatched):
            mark.reset(value)

    def cut(self, end: int) -> None:
        """The log of a replica was cut at ``end``. Nobody waits for a replica's records."""
        for mark in (self.appended, self.flushed, self.replicated, self.dispatched):
            mark.reset(min(mark.value, end))

    def abandon(self) -> None:
        """Answer all waiters: the marks will not move any more, or back."""
        for mark in (self.appended, self.flushed, self.replicated, self.dispatched):
            mark.abandon()

    def put(self, end: int) -> None:
        """The log now ends here, and its queues and index are up to date."""
        appended, dispatched = self.appended, self.dispatched
        if appended._waiters or dispatched._waiters:
            appended.advance(end)
            dispatched.advance(end)
        else:
            appended.value = dispatched.value = end
        self.on_append()

    def append_raw(self, end: int) -> None:
        """The log now ends here; its queues and index follow later."""
        self.appended.advance(end)
        self.on_append()

    def __repr__(self) -> str:
        return (
            f"<Watermarks appended={self.appended.value} flushed={self.flushed.value} "
            f"replicated={self.replicated.value} dispatched={self.dispatched.value}>"
        )


def _nothing() -> None:
    return None


def _call(callback: Callable[[], None]) -> None:
    callback()


def _target(waiter: _Waiter) -> int:
    return waiter.target
