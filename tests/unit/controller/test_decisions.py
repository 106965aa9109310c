"""Ids, registrations, changes of the set, brokers to forget."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.controller.group_of import alive, group_of

from cometmq.controller import decisions
from cometmq.controller.decisions import SetChange
from cometmq.controller.group import GROUPS_MAX, MEMBERS_MAX, Group, Living
from cometmq.protocol.refusal import Refused


def apply(group: Group | None, applied_id: int, check_code: str = "10.0.0.9:1;9") -> Group:
    decision = decisions.apply_id(
        group,
        cluster="C",
        broker_name="bk",
        applied_id=applied_id,
        check_code=check_code,
        group_count=0,
    )
    assert decision.group is not None
    assert decision.group.fault() is None
    return decision.group


def clean(group: Group | None, ids: list[int] | None, living: Living, **other: Any) -> Group:
    asked: dict[str, Any] = {"broker_name": "bk", "cluster": "C", "even_alive": False, **other}
    decision = decisions.clean(group, ids=ids, living=living, **asked)
    assert decision.group is not None
    assert decision.group.fault() is None
    return decision.group


def test_ids_are_given_one_after_the_other() -> None:
    assert decisions.next_id(None, "C", "bk") == 1
    group = apply(None, 1, "10.0.0.1:10911;5")
    assert group.members[1].address == "10.0.0.1:10911"
    assert decisions.next_id(group, "C", "bk") == 2
    assert apply(group, 2).members.keys() == {1, 2}


def test_the_same_broker_may_ask_again() -> None:
    group = apply(None, 1)
    assert apply(group, 1) is group


@pytest.mark.parametrize("taken", [1, 3, 4, 0, -1])
def test_other_ids_than_the_next_are_refused(taken: int) -> None:
    with pytest.raises(Refused, match=f"2014: Fail to apply brokerId: {taken} in broker-set: bk"):
        apply(group_of(1), taken)
    with pytest.raises(Refused, match="2014"):
        apply(None, 2)


def test_ids_and_groups_are_bounded() -> None:
    with pytest.raises(Refused, match=f"has {MEMBERS_MAX} brokers already"):
        apply(group_of(MEMBERS_MAX), MEMBERS_MAX + 1)
    with pytest.raises(Refused, match=f"knows {GROUPS_MAX} broker-sets already"):
        decisions.apply_id(
            None,
            cluster="C",
            broker_name="bk",
            applied_id=1,
            check_code="h:1;1",
            group_count=GROUPS_MAX,
        )


@pytest.mark.parametrize(
    ("cluster", "name", "check_code", "fault"),
    [
        ("C", "", "h:1;1", "brokerName must have 1 to 255"),
        (" ", "bk", "h:1;1", "clusterName must have 1 to 255"),
        ("C", "b" * 256, "h:1;1", "brokerName must have 1 to 255"),
        ("C", "b\nk", "h:1;1", "printable"),
        ("C", "bk", "nowhere;1", "registerCheckCode: expected an address"),
        ("C", "bk", "h:1;" + "1" * 600, "at most 512 characters"),
        ("Other", "bk", "h:1;1", "belongs to the cluster C, not to Other"),
    ],
)
def test_bad_input_is_named(cluster: str, name: str, check_code: str, fault: str) -> None:
    with pytest.raises(Refused, match=f"2005: .*{fault}"):
        decisions.apply_id(
            group_of(1),
            cluster=cluster,
            broker_name=name,
            applied_id=2,
            check_code=check_code,
            group_count=0,
        )


def register(group: Group | None, broker_id: int, address: str) -> Group:
    decision = decisions.register(
        group, cluster="C", broker_name="bk", broker_id=broker_id, address=address
    )
    assert decision.group is not None
    assert bool(decision.line) == (decision.group is not group)
    return decision.group


def test_a_replica_that_starts_again_changes_nothing_but_its_address() -> None:
    group = group_of(2, master=1, in_sync=(1, 2), epoch=3, set_epoch=6)
    assert register(group, 2, "10.0.0.2:10911") is group
    moved = register(group, 2, "10.0.0.7:10911")
    assert (moved.members[2].address, moved.master_id) == ("10.0.0.7:10911", 1)
    assert moved.members[2].check_code == group.members[2].check_code


def test_a_master_that_starts_again_has_to_be_elected_again() -> None:
    group = group_of(2, master=1, in_sync=(1, 2), epoch=3, set_epoch=6)
    after = register(group, 1, "10.0.0.1:10911")
    assert (after.master_id, after.master_epoch) == (None, 4)
    assert (sorted(after.sync_state_set), after.sync_state_set_epoch) == ([1, 2], 6)


def test_who_has_no_id_cannot_register() -> None:
    for group in (None, group_of(1)):
        with pytest.raises(
            Refused, match="2010: BrokerId: 7 hasn't been registered in broker-set: bk"
        ):
            register(group, 7, "h:1")
    with pytest.raises(Refused, match="2005: brokerAddress"):
        register(group_of(1), 1, "h")


SET = group_of(3, master=2, in_sync=(1, 2), epoch=4, set_epoch=7)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"sync_state_set": {1, 2}, "master_id": 1}, 2013),
        ({"master_id": 1, "master_epoch": 1}, 2002),
        ({"master_epoch": 3, "sync_state_set_epoch": 6}, 2000),
        ({"sync_state_set_epoch": 8, "sync_state_set": {9}}, 2001),
        ({"sync_state_set": {2, 9}}, 2003),
        ({"sync_state_set": {1, 2, 3}}, 2006),
        ({"sync_state_set": {1}}, 2013),
        ({"sync_state_set": set()}, 2013),
    ],
)
def test_a_set_is_refused_with_rocketmqs_code_in_its_order(
    change: dict[str, Any], code: int
) -> None:
    wish: dict[str, Any] = {
        "master_id": 2,
        "master_epoch": 4,
        "sync_state_set": {2},
        "sync_state_set_epoch": 7,
        **change,
    }
    wish["sync_state_set"] = frozenset(wish["sync_state_set"])
    with pytest.raises(Refused) as refused:
        decisions.alter_sync_state_set(SET, SetChange(**wish), alive(1, 2))
    assert (refused.value.code, refused.value.ext) == (code, {"newSyncStateSetEpoch": "0"})


def test_a_master_changes_its_set() -> None:
    wish = SetChange(
        master_id=2, master_epoch=4, sync_state_set=frozenset({2, 3}), sync_state_set_epoch=7
    )
    after = decisions.alter_sync_state_set(SET, wish, alive(2, 3)).answer
    assert (sorted(after.sync_state_set), after.sync_state_set_epoch) == ([2, 3], 8)
    assert (after.master_id, after.master_epoch) == (2, 4)
    with pytest.raises(Refused, match="2013"):
        decisions.alter_sync_state_set(None, wish, alive())


def test_the_dead_are_forgotten() -> None:
    after = clean(SET, [1, 3], alive(2))
    assert (list(after.members), list(after.sync_state_set), after.sync_state_set_epoch) == (
        [2],
        [2],
        8,
    )
    assert (after.master_id, after.master_epoch, after.next_id) == (2, 4, 4)
    assert clean(SET, [3], alive()).sync_state_set_epoch == 7
    assert clean(SET, [], alive()) is SET


def test_forgetting_the_master_leaves_none() -> None:
    after = clean(SET, [2], alive())
    assert (after.master_id, after.master_epoch, list(after.sync_state_set)) == (None, 5, [1])


def test_a_group_without_in_sync_replicas_is_no_new_group() -> None:
    after = clean(SET, [1, 2], alive())
    assert (list(after.members), list(after.sync_state_set), after.is_new) == ([3], [], False)


def test_a_group_that_is_forgotten_begins_anew_with_later_ids_and_epochs() -> None:
    after = clean(SET, None, alive())
    assert (list(after.members), list(after.sync_state_set), after.is_new) == ([], [], True)
    assert (after.master_epoch, after.sync_state_set_epoch) == (5, 8)
    assert decisions.next_id(after, "C", "bk") == 4
    assert apply(after, 4).is_new
    with pytest.raises(Refused, match="2014"):
        apply(after, 1)
    with pytest.raises(Refused, match="2009"):
        clean(after, None, alive())


def test_the_living_and_the_doubtful_are_kept_unless_told_otherwise() -> None:
    for living in (alive(1), alive(doubtful=[1])):
        with pytest.raises(
            Refused, match=r"2009: Broker \[bk,  1\] is still alive, clean up failure"
        ):
            clean(SET, [1], living)
        assert 1 not in clean(SET, [1], living, even_alive=True).members


def test_what_is_not_there_cannot_be_forgotten() -> None:
    for group, ids in ((None, None), (SET, [9])):
        with pytest.raises(Refused, match=r"^2009"):
            clean(group, ids, alive())
    with pytest.raises(Refused, match=r"2005: .*cluster"):
        clean(SET, [1], alive(), cluster="Other")
