"""Waiting for the old owners of a queue: how often they are asked, and for how long."""

from __future__ import annotations

import pytest

from cometmq.client.core.consume.member.old_owners import (
    ASK_SECONDS,
    ASK_SECONDS_MAX,
    UNKNOWN_SECONDS,
    OldOwners,
)


def owners(*names: str, seconds: float = 10.0) -> OldOwners:
    return OldOwners(names, 100.0, seconds=seconds, answer_seconds=60.0)


def test_without_owners_there_is_nothing_to_wait_for() -> None:
    assert owners().is_over


def test_all_are_asked_at_once_and_each_must_have_let_go() -> None:
    waiting = owners("a", "b")
    assert waiting.due(100.0) == (["a", "b"], [])
    assert waiting.due(100.1) == ([], [])
    waiting.answered("a", 100.1, has_queue=False)
    assert not waiting.is_over
    waiting.answered("b", 100.1, has_queue=False)
    assert waiting.is_over


def test_one_that_has_it_is_asked_again_after_pauses_that_grow() -> None:
    waiting = owners("a")
    now, pauses = 100.0, []
    while now < 105:
        assert waiting.due(now) == (["a"], [])
        waiting.answered("a", now, has_queue=True)
        pauses.append(waiting.next_at() - now)
        assert waiting.due(now + pauses[-1] / 2) == ([], [])
        now = waiting.next_at()
    assert pauses[:4] == pytest.approx([ASK_SECONDS, 0.1, 0.2, 0.4])
    assert pauses[-1] == pytest.approx(ASK_SECONDS_MAX)


def test_one_that_keeps_it_is_passed_over_when_the_time_is_up() -> None:
    waiting = owners("a", seconds=0.12)
    waiting.due(100.0)
    waiting.answered("a", 100.0, has_queue=True)
    waiting.due(100.05)
    waiting.answered("a", 100.06, has_queue=True)
    assert waiting.next_at() == pytest.approx(100.12)
    assert waiting.due(100.12) == ([], ["a"])
    assert waiting.is_over


def test_an_answer_under_way_in_the_end_is_waited_for() -> None:
    waiting = owners("a", seconds=1.0)
    waiting.due(100.0)
    assert waiting.due(101.0) == ([], [])
    waiting.answered("a", 102.0, has_queue=True)
    assert waiting.due(102.0) == ([], ["a"])


def test_but_not_for_ever() -> None:
    waiting = owners("a", seconds=1.0)
    waiting.due(100.0)
    assert waiting.next_at() == 161.0
    assert waiting.due(161.0) == ([], ["a"])


def test_one_that_cannot_be_asked_gets_a_moment() -> None:
    waiting = owners("a")
    waiting.due(100.0)
    waiting.silent("a", 103.0)
    assert waiting.next_at() == 103.0 + UNKNOWN_SECONDS
    assert waiting.due(103.5) == ([], [])
    assert waiting.due(104.0) == ([], [])
    assert waiting.is_over
    short = owners("a", seconds=0.1)
    short.due(100.0)
    short.silent("a", 100.0)
    assert short.next_at() == 100.1


def test_answers_of_those_who_are_done_with_do_no_harm() -> None:
    waiting = owners("a")
    waiting.answered("b", 100.0, has_queue=True)
    waiting.silent("b", 100.0)
    assert waiting.due(100.0) == (["a"], [])
