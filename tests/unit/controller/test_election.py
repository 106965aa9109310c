"""Who becomes master: every rule, and what must never happen."""

from __future__ import annotations

import pytest
from tests.unit.controller.group_of import alive, group_of

from cometmq.controller.election import Election, ElectionRequest, Verdict, elect
from cometmq.controller.group import EPOCH_MAX, Decision, Group, Living, Report
from cometmq.protocol.refusal import Refused

BY_CONTROLLER = ElectionRequest()


def asked_by(broker_id: int) -> ElectionRequest:
    return ElectionRequest(broker_id=broker_id)


def designated(broker_id: int) -> ElectionRequest:
    return ElectionRequest(broker_id=broker_id, is_designated=True)


def held(
    group: Group, request: ElectionRequest, living: Living, *, unclean: bool = False
) -> Decision[Election]:
    decision = elect(group, request, living, unclean_allowed=unclean)
    assert decision.group is not None
    assert decision.group.fault() is None, decision.group.fault()
    assert bool(decision.line) == (decision.group is not group)
    return decision


def master(decision: Decision[Election]) -> tuple[int | None, int, set[int], int]:
    group = decision.group
    assert group is not None
    return (
        group.master_id,
        group.master_epoch,
        set(group.sync_state_set),
        group.sync_state_set_epoch,
    )


def test_the_first_that_asks_is_the_first_master() -> None:
    decision = held(group_of(2), asked_by(2), alive(1, 2))
    assert decision.answer.verdict is Verdict.ELECTED
    assert not decision.answer.is_unclean
    assert master(decision) == (2, 1, {2}, 1)


def test_the_first_that_asks_need_not_have_sent_a_heartbeat() -> None:
    assert master(held(group_of(1), asked_by(1), alive())) == (1, 1, {1}, 1)


def test_of_a_group_that_the_controller_forgot_the_fullest_is_first_and_epochs_go_on() -> None:
    living = alive(2, b1=Report(epoch=7, max_offset=10), b3=Report(epoch=6, max_offset=99))
    assert master(held(group_of(3), asked_by(2), living)) == (1, 8, {1}, 1)


def test_a_lower_priority_number_does_not_beat_the_one_that_asks_first() -> None:
    living = alive(b1=Report(epoch=-1, max_offset=0, priority=1), b2=Report(epoch=-1, max_offset=0))
    assert master(held(group_of(2), asked_by(2), living)) == (2, 1, {2}, 1)


def test_a_new_group_gets_no_master_unasked() -> None:
    group = group_of(2)
    for request in (BY_CONTROLLER, designated(1)):
        decision = held(group, request, alive(2))
        assert (decision.answer.verdict, decision.group) == (Verdict.NO_CANDIDATE, group)
    assert master(held(group, designated(2), alive(2))) == (2, 1, {2}, 1)


def test_the_longest_log_of_the_latest_epoch_wins_then_the_priority_then_the_id() -> None:
    group = group_of(5, master=1, in_sync=(1, 2, 3, 4), epoch=4, set_epoch=6)
    full = Report(epoch=4, max_offset=500)
    cases = {
        3: alive(b2=Report(epoch=3, max_offset=900), b3=full, b5=Report(epoch=4, max_offset=999)),
        4: alive(b2=Report(epoch=4, max_offset=499, priority=1), b4=full),
        2: alive(b2=full, b3=full, b4=full),
    }
    for winner, living in cases.items():
        assert master(held(group, BY_CONTROLLER, living)) == (winner, 5, {winner}, 7)
    preferred = alive(b2=full, b3=Report(epoch=4, max_offset=500, priority=5))
    assert master(held(group, asked_by(2), preferred)) == (3, 5, {3}, 7)


def test_a_living_master_stays() -> None:
    group = group_of(2, master=1, in_sync=(1, 2), epoch=3, set_epoch=6)
    for request in (BY_CONTROLLER, asked_by(2), asked_by(1), designated(1)):
        decision = held(group, request, alive(1, 2))
        assert (decision.answer.verdict, decision.group) == (Verdict.STILL_MASTER, group)
    assert decision.answer.reason == (
        "The old master 1 is still alive, not need to elect new master for broker bk"
    )


def test_an_operator_moves_the_master_to_an_in_sync_replica() -> None:
    group = group_of(2, master=1, in_sync=(1, 2), epoch=3, set_epoch=6)
    decision = held(group, designated(2), alive(1, 2))
    assert (master(decision), decision.answer.is_unclean) == ((2, 4, {2}, 7), False)


@pytest.mark.parametrize("unclean", [False, True])
def test_an_operator_cannot_name_a_dead_one_or_pass_over_those_in_sync(unclean: bool) -> None:
    group = group_of(3, master=1, in_sync=(1, 2), epoch=3, set_epoch=6)
    for living in (alive(1, 2), alive(2, 3), alive(3, doubtful=[2])):
        decision = held(group, designated(3), living, unclean=unclean)
        assert (decision.answer.verdict, decision.group) == (Verdict.NO_CANDIDATE, group)


def test_an_operator_may_name_a_lagging_replica_when_nobody_else_is_left() -> None:
    group = group_of(3, master=1, in_sync=(1, 2), epoch=3, set_epoch=6)
    decision = held(group, designated(3), alive(3))
    assert (master(decision), decision.answer.is_unclean) == ((3, 4, {3}, 7), True)
    assert "unclean=True" in decision.line


def test_without_an_in_sync_replica_there_is_no_master() -> None:
    group = group_of(3, master=1, in_sync=(1, 2), epoch=3, set_epoch=6)
    decision = held(group, BY_CONTROLLER, alive(3))
    assert decision.answer.verdict is Verdict.NO_CANDIDATE
    # Who was master can no longer change the set, and whoever returns from the set may be elected.
    assert master(decision) == (None, 4, {1, 2}, 6)
    after = decision.group
    assert after is not None
    again = held(after, BY_CONTROLLER, alive(3))
    assert again.group is after
    assert held(after, asked_by(3), alive(3)).group is after
    assert master(held(after, asked_by(2), alive(2, 3))) == (2, 5, {2}, 7)


def test_a_broker_that_asks_in_vain_changes_nothing() -> None:
    group = group_of(3, master=1, in_sync=(1, 2), epoch=3, set_epoch=6)
    decision = held(group, asked_by(3), alive(3))
    assert (decision.answer.verdict, decision.group) == (Verdict.NO_CANDIDATE, group)


def test_unclean_only_if_allowed_and_nobody_in_sync_may_be_alive() -> None:
    group = group_of(4, master=1, in_sync=(1, 2), epoch=3, set_epoch=6)
    living = alive(b3=Report(epoch=3, max_offset=5), b4=Report(epoch=3, max_offset=9))
    decision = held(group, BY_CONTROLLER, living, unclean=True)
    assert (master(decision), decision.answer.is_unclean) == ((4, 4, {4}, 7), True)
    in_doubt = held(group, BY_CONTROLLER, alive(3, 4, doubtful=[2]), unclean=True)
    assert in_doubt.group is group
    clean = held(group, BY_CONTROLLER, alive(2, 3, 4), unclean=True)
    assert (master(clean), clean.answer.is_unclean) == ((2, 4, {2}, 7), False)


def test_a_young_controller_waits_for_those_it_has_not_heard_of() -> None:
    group = group_of(2, master=1, in_sync=(1, 2), epoch=3, set_epoch=6)
    assert held(group, asked_by(2), alive(2, doubtful=[1])).answer.verdict is Verdict.STILL_MASTER
    without = group_of(2, in_sync=(1, 2), epoch=4, set_epoch=6)
    waiting = held(without, asked_by(1), alive(1, doubtful=[2]))
    assert (waiting.answer.verdict, waiting.group) == (Verdict.NO_CANDIDATE, without)
    assert master(held(without, asked_by(1), alive(1))) == (1, 5, {1}, 7)


@pytest.mark.parametrize("old_master", [None, 1, 2])
def test_if_brokers_know_later_elections_an_operator_has_to_say_who_has_the_most(
    old_master: int | None,
) -> None:
    """The set may have changed since: who is in it may lack what was acknowledged."""
    group = group_of(3, master=old_master, in_sync=(1, 2), epoch=3, set_epoch=6)
    living = alive(1, 2, b3=Report(epoch=9, max_offset=1))
    for request in (asked_by(1), asked_by(3), BY_CONTROLLER):
        decision = held(group, request, living, unclean=True)
        assert decision.group is group
        assert decision.answer.verdict is Verdict.NO_CANDIDATE
        assert "an old copy: epoch 3, a broker has 9" in decision.answer.reason
    for broker in (1, 3):
        decision = held(group, designated(broker), living)
        assert master(decision) == (broker, 10, {broker}, 7)
        assert decision.answer.is_unclean
    assert held(group, designated(2), alive(b3=Report(epoch=4))).group is group


def test_one_that_lies_about_its_epoch_leaves_epochs_for_others() -> None:
    group = group_of(2)
    decision = held(group, asked_by(1), alive(1, b2=Report(epoch=EPOCH_MAX, max_offset=1)))
    assert master(decision)[1] < EPOCH_MAX // 2 + 10


def test_when_no_epoch_is_left_nothing_is_decided() -> None:
    group = group_of(2, in_sync=(1, 2), epoch=EPOCH_MAX, set_epoch=6)
    with pytest.raises(Refused, match="no epoch left"):
        elect(group, asked_by(1), alive(1), unclean_allowed=False)


def test_strangers_are_refused() -> None:
    for group, request in (
        (None, BY_CONTROLLER),
        (group_of(0), asked_by(1)),
        (group_of(2), asked_by(3)),
    ):
        with pytest.raises(Refused, match=r"^2010: .*registered"):
            elect(group, request, alive(1, 2), unclean_allowed=True)
    with pytest.raises(Refused, match=r"^2012: BrokerId: 9 hasn't been registered"):
        elect(group_of(2), designated(9), alive(1, 2), unclean_allowed=True)
