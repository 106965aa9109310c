"""What a broker is from what its controller tells it, and for how long."""

from __future__ import annotations

from cometmq.broker.controller_client.group_view import GroupView
from cometmq.broker.controller_client.standing import (
    BecomeMaster,
    BecomeSlave,
    StandForElection,
    Standing,
    StepDown,
    TakeSet,
)

OWN, OTHER = 1, 2
NONE = GroupView(epoch=3)


def _view(epoch: int, master: int = OWN, address: str = "") -> GroupView:
    return GroupView(epoch, master, address or f"broker-{master}", frozenset({master}), epoch)


def _standing() -> Standing:
    standing = Standing(10.0)
    standing.own_id = OWN
    return standing


def test_a_group_without_a_master_elects_one() -> None:
    standing = _standing()
    assert standing.told(NONE, 0.0) == [StandForElection()]
    assert not standing.is_master
    assert standing.is_in_touch(9.0)


def test_a_master_is_one_as_long_as_it_can_prove_it() -> None:
    standing = _standing()
    view = _view(3)
    assert standing.told(view, 100.0) == [BecomeMaster(view)]
    assert standing.is_proven(109.9)
    assert standing.told(view, 105.0) == [TakeSet(view, 105.0)]
    assert standing.is_proven(114.9)
    assert not standing.is_proven(115.0), "from the question on, not from the answer"
    (step,) = standing.tick(115.0)
    assert isinstance(step, StepDown)
    assert standing.tick(116.0) == []
    assert not standing.is_in_touch(116.0), "no more heartbeats: let them elect another"
    assert standing.told(view, 120.0) == [BecomeMaster(view)]


def test_a_master_that_hears_of_another_follows_it() -> None:
    standing = _standing()
    standing.told(_view(3), 0.0)
    view = _view(4, OTHER)
    assert standing.told(view, 1.0) == [BecomeSlave(view)]
    assert not standing.is_proven(1.0)
    assert standing.told(view, 2.0) == []


def test_what_is_old_does_not_count() -> None:
    standing = _standing()
    standing.told(_view(4, OTHER), 0.0)
    assert standing.told(_view(3), 1.0) == []
    assert not standing.is_master


def test_a_master_that_moved_is_followed_to_its_new_place() -> None:
    standing = _standing()
    standing.told(_view(4, OTHER, "here"), 0.0)
    view = _view(4, OTHER, "there")
    assert standing.told(view, 1.0) == [BecomeSlave(view)]


def test_a_reign_that_ends_without_a_successor() -> None:
    standing = _standing()
    standing.told(_view(3), 0.0)
    step, stand = standing.told(GroupView(epoch=4), 1.0)
    assert isinstance(step, StepDown)
    assert stand == StandForElection()


def test_the_same_broker_elected_again() -> None:
    standing = _standing()
    standing.told(_view(3), 0.0)
    view = _view(5)
    assert standing.told(view, 1.0) == [BecomeMaster(view)]


def test_a_broker_that_cannot_be_the_master_tries_again() -> None:
    standing = _standing()
    view = _view(3)
    standing.told(view, 0.0)
    assert isinstance(standing.failed("no space")[0], StepDown)
    assert standing.told(view, 1.0) == [BecomeMaster(view)]


def test_what_a_controller_remembers_lets_a_master_go_on() -> None:
    standing = _standing()
    view = _view(3)
    standing.told(view, 0.0)
    remembered = view._replace(is_certain=False)
    assert standing.told(remembered, 8.0) == []
    assert standing.is_proven(17.0)
    # Not of another reign, and not if it remembers another master.
    for other in (_view(2), _view(4), _view(3, OTHER), _view(4, OTHER), NONE):
        assert standing.told(other._replace(is_certain=False), 9.0) == []
    assert standing.is_proven(17.9)
    assert not standing.is_proven(18.0)
    assert standing.is_in_touch(18.0)


def test_what_a_controller_remembers_changes_nothing() -> None:
    """Who has just started knows no epoch: it must not become what it was before, nor follow who was the master."""
    standing = _standing()
    for view in (_view(3), _view(3, OTHER), NONE):
        assert standing.told(view._replace(is_certain=False), 1.0) == []
    assert not standing.is_master
    view = _view(1, OTHER)
    assert standing.told(view, 2.0) == [BecomeSlave(view)]
