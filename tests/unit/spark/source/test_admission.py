from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cometmq.spark.source.admission import Patience, share


def test_all_is_taken_below_the_limit() -> None:
    assert share({"a": 3, "b": 0}, 3) == {"a": 3, "b": 0}


def test_queues_are_drained_at_the_same_pace() -> None:
    assert share({"a": 900, "b": 100}, 102) == {"a": 92, "b": 10}


def test_a_small_queue_is_not_left_out() -> None:
    assert share({"a": 10**9, "b": 1}, 10) == {"a": 9, "b": 1}


def test_everybody_has_a_turn_when_there_is_not_one_row_for_each() -> None:
    wanted = dict.fromkeys("abcd", 100)
    seen: set[str] = set()
    for turn in range(0, 8, 2):
        shares = share(wanted, 2, turn=turn)
        assert sum(shares.values()) == 2
        seen.update(key for key, rows in shares.items() if rows)
    assert seen == set("abcd")


@given(
    st.dictionaries(st.integers(), st.integers(0, 10_000), max_size=20),
    st.integers(1, 20_000),
    st.integers(0, 1000),
)
def test_the_limit_is_used_up_and_never_exceeded(
    wanted: dict[int, int], limit: int, turn: int
) -> None:
    shares = share(wanted, limit, turn=turn)
    assert all(0 <= shares[key] <= amount for key, amount in wanted.items())
    assert sum(shares.values()) == min(limit, sum(wanted.values()))


def test_patience_waits_for_rows_or_for_the_oldest() -> None:
    patience = Patience(10, 60.0)
    assert not patience.is_over(3, now=100.0)
    assert not patience.is_over(9, now=159.0)
    assert patience.is_over(9, now=160.0)
    # From here on it is a new wait.
    assert not patience.is_over(9, now=161.0)
    assert patience.is_over(10, now=162.0)


def test_patience_starts_with_the_first_row_not_with_the_query() -> None:
    patience = Patience(10, 60.0)
    assert patience.is_over(0, now=0.0)
    assert not patience.is_over(1, now=1000.0)
    assert not patience.is_over(1, now=1059.0)
    assert patience.is_over(1, now=1060.0)


def test_no_patience_without_a_minimum() -> None:
    assert Patience(None, 60.0).is_over(1, now=0.0)
