"""Who stands in for a lost master, and what follows from what the name servers tell."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cometmq.broker.replication.acting.acting_master import (
    GroupWatch,
    Instruction,
    MasterCame,
    MasterWent,
    StepBack,
    TakeOver,
)

OWN, MASTER, OTHER = "s1:1", "m:1", "s2:1"


def saw(watch: GroupWatch, members: Mapping[int, str], own_id: int = 1) -> list[Instruction]:
    return watch.saw(members, own_id, is_slave=True)


@pytest.fixture
def watch() -> GroupWatch:
    return GroupWatch(OWN)


def test_a_slave_acts_when_its_master_is_lost_and_stops_when_it_returns(watch: GroupWatch) -> None:
    assert saw(watch, {0: MASTER, 1: OWN}) == [MasterCame(MASTER)]
    assert saw(watch, {0: MASTER, 1: OWN}) == []
    assert saw(watch, {1: OWN}) == [MasterWent(), TakeOver()]
    assert watch.is_acting
    assert saw(watch, {1: OWN}) == []
    assert saw(watch, {0: MASTER, 1: OWN}) == [StepBack(), MasterCame(MASTER)]
    assert not watch.is_acting


def test_only_the_lowest_id_acts(watch: GroupWatch) -> None:
    assert saw(watch, {1: OTHER, 2: OWN}, 2) == []
    assert saw(watch, {2: OWN, 3: "s3:1"}, 2) == [TakeOver()]
    assert saw(watch, {1: OTHER, 2: OWN}, 2) == [StepBack()]


def test_a_master_at_another_address_is_told_of(watch: GroupWatch) -> None:
    saw(watch, {0: MASTER, 1: OWN})
    assert saw(watch, {0: OTHER, 1: OWN}) == [MasterCame(OTHER)]


def test_one_that_is_not_listed_does_not_act(watch: GroupWatch) -> None:
    assert saw(watch, {}) == []
    assert saw(watch, {2: OTHER}) == []
    assert saw(watch, {1: OTHER}) == [], "somebody else has its id"
    assert not watch.is_acting


def test_an_old_entry_of_its_own_is_no_master(watch: GroupWatch) -> None:
    assert saw(watch, {0: OWN}) == []
    assert saw(watch, {0: OWN, 1: OWN}) == []


def test_a_slave_that_is_promoted_stops_to_act(watch: GroupWatch) -> None:
    saw(watch, {1: OWN})
    assert watch.saw({0: OWN}, 0, is_slave=False) == [StepBack()]
    assert not watch.is_acting
    assert watch.saw({0: OWN, 2: OTHER}, 0, is_slave=False) == []
