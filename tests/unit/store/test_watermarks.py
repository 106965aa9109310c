from __future__ import annotations

from collections.abc import Callable

from cometmq.store.watermarks import Watermark, Watermarks


def direct(callback: Callable[[], None]) -> None:
    callback()


def test_a_target_already_reached_is_answered_at_once() -> None:
    answers: list[bool] = []
    mark = Watermark(direct, 10)
    mark.when(10, answers.append)
    assert answers == [True]
    assert mark.waiting == 0


def test_one_move_releases_all_below_it_and_nobody_above() -> None:
    answers: list[str] = []
    mark = Watermark(direct)
    mark.when(5, lambda ok: answers.append(f"5{ok}"))
    mark.when(7, lambda ok: answers.append(f"7{ok}"))
    mark.when(9, lambda ok: answers.append(f"9{ok}"))
    mark.advance(7)
    assert answers == ["5True", "7True"]
    assert mark.waiting == 1


def test_a_waiter_with_a_lower_target_is_not_stuck_behind_a_higher_one() -> None:
    answers: list[int] = []
    mark = Watermark(direct)
    mark.when(9, lambda _: answers.append(9))
    mark.when(5, lambda _: answers.append(5))
    mark.advance(5)
    assert answers == [5]


def test_the_mark_never_goes_back() -> None:
    mark = Watermark(direct, 10)
    mark.advance(3)
    assert mark.value == 10


def test_releases_are_brought_to_the_owner_and_not_run_by_the_mover() -> None:
    brought: list[Callable[[], None]] = []
    answers: list[bool] = []
    mark = Watermark(brought.append)
    mark.when(1, answers.append)
    mark.advance(1)
    assert answers == []
    brought.pop()()
    assert answers == [True]


def test_a_mark_that_moves_while_the_waiter_is_added_still_releases_it() -> None:
    brought: list[Callable[[], None]] = []
    answers: list[bool] = []

    class Racing(Watermark):
        """Moves between the first look at the mark and the look after the waiter is visible."""

        __slots__ = ("_looks",)

        @property
        def value(self) -> int:
            self._looks += 1
            return 0 if self._looks == 1 else 5

        @value.setter
        def value(self, _: int) -> None:
            self._looks = 0

    mark = Racing(brought.append)
    mark.when(5, answers.append)
    assert len(brought) == 1
    brought.pop()()
    assert answers == [True]


def test_only_waiters_past_their_deadline_expire() -> None:
    answers: list[str] = []
    mark = Watermark(direct)
    mark.when(5, lambda ok: answers.append(f"a{ok}"), deadline=10.0)
    mark.when(6, lambda ok: answers.append(f"b{ok}"))
    mark.when(7, lambda ok: answers.append(f"c{ok}"), deadline=20.0)
    mark.expire(15.0)
    assert answers == ["aFalse"]
    mark.advance(7)
    assert answers == ["aFalse", "bTrue", "cTrue"]


def test_abandon_answers_everybody() -> None:
    answers: list[bool] = []
    mark = Watermark(direct)
    mark.when(5, answers.append)
    mark.abandon()
    assert answers == [False]


def test_whoever_moves_the_mark_is_told_that_somebody_waits() -> None:
    told: list[int] = []
    marks = Watermarks()
    marks.flushed.on_wait(lambda: told.append(1))
    marks.flushed.when(1, lambda _: None)
    marks.flushed.when(0, lambda _: None)
    assert told == [1]
