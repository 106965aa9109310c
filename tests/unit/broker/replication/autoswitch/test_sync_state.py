"""Which brokers a master waits for, and what it proposes to its controller."""

from __future__ import annotations

from cometmq.broker.replication.autoswitch.sync_state import (
    JOIN_SECONDS_MAX,
    LATE_SECONDS,
    Proposal,
    SyncState,
)


def _set(*members: int) -> frozenset[int]:
    return frozenset(members)


def _state(*members: int, epoch: int = 5) -> SyncState:
    state = SyncState(15.0)
    state.begin(1, _set(*members), epoch)
    return state


def test_a_slave_that_has_everything_is_proposed_and_waited_for_at_once() -> None:
    state = _state(1)
    assert state.look({}, 100, 0.0) is None
    assert state.awaited == _set()
    assert state.look({2: 100}, 100, 1.0) == Proposal(_set(1, 2), 5)
    assert state.awaited == _set(2)
    assert state.look({2: 100}, 100, 2.0) is None, "one at a time"
    state.accepted(_set(1, 2), 6, 9.0)
    assert state.members == _set(1, 2)
    assert state.look({2: 100}, 100, 3.0) is None


def test_a_slave_that_lags_is_not_waited_for() -> None:
    state = _state(1)
    state.look({2: 10}, 100, 0.0)
    assert state.look({2: 50}, 200, 1.0) is None
    assert state.awaited == _set()


def test_under_load_a_slave_is_waited_for_before_it_is_proposed() -> None:
    """It never has all that is in the log at a moment, but it has what was there a second ago."""
    state = _state(1)
    state.look({}, 100, 0.0)
    assert state.look({2: 190}, 200, 1.0) is None
    assert state.awaited == _set(2), "what is acknowledged from now on, it has"
    assert state.look({2: 290}, 300, 2.0) == Proposal(_set(1, 2), 5)


def test_sends_do_not_wait_long_for_one_that_joins() -> None:
    state = _state(1)
    state.look({}, 100, 0.0)
    state.look({2: 190}, 200, 1.0)
    assert state.awaited == _set(2)
    state.look({2: 195}, 300, 1.1 + JOIN_SECONDS_MAX)
    assert state.awaited == _set()


def test_a_member_that_is_gone_is_waited_for_until_the_controller_lets_it_go() -> None:
    state = _state(1, 2, 3)
    assert state.look({2: 100, 3: 100}, 100, 0.0) is None
    assert state.look({2: 100}, 100, 1.0) == Proposal(_set(1, 2), 5)
    assert state.awaited == _set(2, 3)
    state.accepted(_set(1, 2), 6, 9.0)
    assert state.awaited == _set(2)


def test_a_member_that_does_not_catch_up_leaves() -> None:
    state = _state(1, 2)
    end = 100
    proposals = []
    for second in range(20):
        end += 100
        proposals.append(state.look({2: 100}, end, float(second)))
    assert proposals.index(Proposal(_set(1), 5)) == 16


def test_a_proposal_without_an_answer_counts_until_the_truth_is_known() -> None:
    state = _state(1)
    state.look({2: 100}, 100, 0.0)
    state.unanswered()
    state.told(_set(1), 5, 0.5)
    assert state.awaited == _set(2), "it may still be accepted"
    assert state.look({}, 100, 1.0) == Proposal(_set(1, 2), 5), "the same again"
    state.unanswered()
    state.told(_set(1, 2), 6, 1.5)
    assert state.members == _set(1, 2)
    assert state.look({}, 100, 2.0) == Proposal(_set(1), 6)


def test_a_refused_proposal_is_forgotten() -> None:
    state = _state(1)
    state.look({2: 100}, 100, 0.0)
    state.refused(0.0)
    assert state.awaited == _set()


def test_what_is_old_does_not_count() -> None:
    state = _state(1, 2)
    state.told(_set(1), 4, 1.0)
    assert state.members == _set(1, 2)


def test_a_reign_that_goes_on_remembers_what_it_proposed() -> None:
    state = _state(1)
    state.look({2: 100}, 100, 0.0)
    state.begin(1, _set(1), 5)
    assert state.awaited == _set(2), "it may still be accepted"
    state.begin(1, _set(1), 7)
    assert state.awaited == _set()


def test_a_refusal_of_what_may_have_been_accepted_before_says_nothing() -> None:
    """The set that was proposed twice is refused, because it is the set already."""
    state = _state(1)
    state.look({2: 100}, 100, 0.0)
    state.unanswered()
    assert state.look({2: 100}, 100, 4.0) == Proposal(_set(1, 2), 5)
    state.refused(4.5)
    assert state.awaited == _set(2)
    assert state.look({2: 100}, 100, 5.0) is None, "first the controller has to tell"
    state.told(_set(1), 5, asked_at=4.4)
    assert state.awaited == _set(2), "asked before the refusal"
    state.told(_set(1), 5, asked_at=4.6)
    assert state.awaited == _set(2), "the first one may still be under way"
    state.told(_set(1), 4, asked_at=99.0)
    assert state.awaited == _set(2), "an older set says nothing"
    state.told(_set(1), 5, asked_at=4.6 + LATE_SECONDS)
    assert state.awaited == _set()
    assert state.look({2: 100}, 100, 16.0) == Proposal(_set(1, 2), 5)


def test_a_reign_that_goes_on_does_not_go_back_to_an_older_set() -> None:
    """The answer that says so was overtaken by the one that the set has changed."""
    state = _state(1)
    state.look({2: 100}, 100, 0.0)
    state.accepted(_set(1, 2), 6, 1.0)
    state.begin(1, _set(1), 5, goes_on=True)
    assert (state.members, state.epoch) == (_set(1, 2), 6)
    # Another reign is another matter: its controller may have lost its memory.
    state.begin(1, _set(1), 5)
    assert (state.members, state.epoch) == (_set(1), 5)
