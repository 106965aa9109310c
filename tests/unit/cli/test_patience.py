"""How often a process that dies is started again, and after what pauses."""

from __future__ import annotations

from cometmq.cli.children.patience import LONG_SECONDS, Patience


def test_pauses_grow_and_then_it_is_given_up() -> None:
    patience = Patience()
    assert [patience.pause_after(1.0) for _ in range(5)] == [0.5, 1.0, 2.0, 4.0, None]


def test_a_long_life_makes_up_for_quick_deaths() -> None:
    patience = Patience()
    assert [patience.pause_after(1.0) for _ in range(4)] == [0.5, 1.0, 2.0, 4.0]
    assert patience.pause_after(LONG_SECONDS) == 0.5
    assert patience.pause_after(1.0) == 1.0


def test_long_lives_never_use_it_up() -> None:
    patience = Patience()
    assert {patience.pause_after(LONG_SECONDS) for _ in range(100)} == {0.5}
