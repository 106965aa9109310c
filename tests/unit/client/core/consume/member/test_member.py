"""A member's queues: which are taken, which are let go of, and whom a new owner asks."""

from __future__ import annotations

from typing import Any

from cometmq.client.core.consume.member.instructions import (
    Again,
    AskOwner,
    Commit,
    EndPull,
    FindStart,
    Gone,
    Instructions,
    Lock,
    Tell,
    Unlock,
    Wake,
    Withdraw,
)
from cometmq.client.core.consume.member.member import (
    ASKED_MEMBERS_MAX,
    QUICK_TRIES_MAX,
    Member,
)
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.model.message_queue import MessageQueue

QUEUES = [MessageQueue("b", number, "T") for number in range(6)]


def make(**rules: Any) -> Member:
    return Member("m", MemberRules(**rules))


def share_out(member: Member, members: list[str], now: float = 100.0, **more: Any) -> Instructions:
    return member.share_out("T", QUEUES, members, now, **more)


def holding(member: Member, members: list[str], now: float = 100.0) -> None:
    """All of its share is held."""
    share_out(member, members, now)
    for life in list(member.lives):
        life.lock_answered(now, is_ours=True)
        for other in members:
            life.owner_answered(other, now, has_queue=False)
        life.start_found(0, now)
    assert not member.taking


def asked(todo: Instructions) -> dict[MessageQueue, list[str]]:
    questions: dict[MessageQueue, list[str]] = {}
    for each in todo:
        if isinstance(each, AskOwner):
            questions.setdefault(each.life.queue, []).append(each.owner)
    return questions


def of(todo: Instructions, kind: type[Any]) -> list[MessageQueue]:
    """The queues that an instruction of this kind is about."""
    found: list[Any] = [each for each in todo if isinstance(each, kind)]
    return [each.life.queue for each in found]


def test_a_share_is_taken_and_the_others_are_asked() -> None:
    member = make()
    todo = share_out(member, ["m", "a", "z"])
    assert asked(todo) == {queue: ["a", "z"] for queue in QUEUES[2:4]}
    assert member.taking == QUEUES[2:4]
    assert isinstance(todo[0], Tell)
    assert "members=3 mine=2 drop=0 take=2" in todo[0].text
    assert not share_out(member, ["m", "a", "z"])


def test_nobody_is_asked_alone_in_order_broadcasting_or_without_hand_over() -> None:
    assert not asked(share_out(make(), ["m"]))
    assert not asked(share_out(make(handover_seconds=0.0), ["m", "a"]))
    todo = share_out(make(is_orderly=True), ["m", "a"])
    assert of(todo, Lock) == QUEUES[3:]
    assert not asked(todo)
    todo = share_out(make(is_broadcast=True), [])
    assert of(todo, FindStart) == QUEUES


def test_in_a_large_group_only_the_last_owner_is_asked() -> None:
    others = [f"x{number}" for number in range(ASKED_MEMBERS_MAX + 1)]
    todo = share_out(make(), ["m", *others])
    # Without us the first queues belonged to the first members.
    assert asked(todo) == {QUEUES[0]: ["x0"]}
    member = make()
    share_out(member, ["x0", "x1"])
    todo = share_out(member, ["m", *others])
    assert asked(todo) == {QUEUES[0]: ["x0"]}
    member = make()
    share_out(member, ["gone", "x1"])
    todo = share_out(member, ["m", *others])
    assert asked(todo) == {}
    assert of(todo, FindStart) == QUEUES[:1]


def test_what_is_no_longer_ours_is_let_go_of() -> None:
    member = make()
    holding(member, ["m"])
    assert list(member.held) == QUEUES
    todo = share_out(member, ["m", "z"])
    assert of(todo, Withdraw) == QUEUES[3:]
    assert list(member.held) == QUEUES[:3]
    assert list(member.leaving) == QUEUES[3:]


def test_a_queue_that_is_ours_again_waits_until_its_old_life_is_over() -> None:
    member = make()
    holding(member, ["m"])
    share_out(member, ["m", "z"])
    todo = share_out(member, ["m"])
    assert [type(each) for each in todo] == [Tell], "nothing can be taken yet"
    life = member.life(QUEUES[3])
    assert life is not None
    assert of(life.withdrawn(0, 101.0), EndPull) == [QUEUES[3]]
    assert life.committed(101.0) == [Gone(life), Again(0.0)]
    assert member.life(QUEUES[3]) is None
    assert of(share_out(member, ["m"]), FindStart) == [QUEUES[3]]


def test_a_queue_that_is_just_taken_is_given_up() -> None:
    member = make()
    share_out(member, ["m"])
    todo = share_out(member, ["m", "z"])
    assert of(todo, Gone) == QUEUES[3:]
    assert member.taking == QUEUES[:3]


def test_topics_that_are_not_subscribed_any_more() -> None:
    member = make()
    holding(member, ["m"])
    other = [MessageQueue("b", 0, "U")]
    member.share_out("U", other, ["m"], 100.0)
    assert of(member.keep_topics({"T", "U"}, 101.0), Withdraw) == []
    assert of(member.keep_topics({"U"}, 101.0), Withdraw) == QUEUES
    assert of(member.keep_topics({"U"}, 102.0), Withdraw) == []
    assert of(member.keep_topics(set(), 102.0), Gone) == other


def test_a_queue_that_is_stuck_is_started_anew_unless_the_user_suspended_it() -> None:
    member = make()
    holding(member, ["m"])
    assert not share_out(member, ["m"], 220.0)
    assert not share_out(member, ["m"], 230.0, is_suspended=True)
    assert of(share_out(member, ["m"], 230.0), Withdraw) == QUEUES


def test_one_that_is_not_listed_has_nothing() -> None:
    member = make()
    assert not share_out(member, ["a", "b"])
    holding(member, ["m"])
    assert of(share_out(member, ["a", "b"]), Withdraw) == QUEUES


def test_rounds_that_fail_are_repeated_soon_but_not_for_ever() -> None:
    member = make()
    assert member.round_ended(is_complete=True) is None
    tries = [member.round_ended(is_complete=False) for _ in range(QUICK_TRIES_MAX + 1)]
    assert tries == [1.0] * QUICK_TRIES_MAX + [None]
    member.round_ended(is_complete=True)
    assert member.round_ended(is_complete=False) == 1.0


def test_locks_of_held_queues_are_renewed() -> None:
    member = make(is_orderly=True)
    share_out(member, ["m"])
    assert member.locks_to_renew() == []
    holding(member, ["m"])
    assert [life.queue for life in member.locks_to_renew()] == QUEUES
    share_out(member, ["m", "z"])
    assert [life.queue for life in member.locks_to_renew()] == QUEUES[:3]
    plain = make()
    holding(plain, ["m"])
    assert plain.locks_to_renew() == []


def test_a_reset_reaches_the_queues_that_are_here() -> None:
    member = make()
    holding(member, ["m", "z"])
    assert of(member.reset(QUEUES[0], 7, 101.0), Withdraw) == [QUEUES[0]]
    assert member.reset(QUEUES[5], 7, 101.0) == ()


def test_closing_lets_go_of_everything_and_takes_nothing_more() -> None:
    member = make(is_orderly=True)
    holding(member, ["m", "z"])
    share_out(member, ["m"])
    todo = member.close(30.0, 101.0)
    assert of(todo, Withdraw) == QUEUES[:3]
    assert of(todo, Unlock) == QUEUES[3:]
    assert {each.at for each in todo if isinstance(each, Wake)} >= {131.0}
    assert share_out(member, ["m"]) == ()
    for life in list(member.lives):
        if life.is_leaving:
            assert of(life.withdrawn(0, 102.0), Commit) == [life.queue]
        life.committed(102.0)
        life.unlocked()
    assert not member.lives
